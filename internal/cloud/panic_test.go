// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/otc"
)

// A read runs on a goroutine of its own, where nobody else catches its panic.
func TestAPanicInASharedReadIsAnErrorOfItsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := true
		list := newList(time.Now, func(context.Context) (int, error) {
			if panics {
				panic("broken list")
			}
			return 1, nil
		})
		points := newBatcher(func(_ context.Context, series []otc.Series, _ int) (map[otc.Series][]otc.Datapoint, error) {
			if panics {
				var none []int
				_ = none[len(series)]
			}
			return nil, nil
		}, time.Now)
		_, listErr := list.Get(t.Context(), project{}, time.Now())
		_, pointsErr := points.get(t.Context(), 1, []otc.Series{numbered(1)}, time.Now())
		for _, err := range []error{listErr, pointsErr} {
			if _, ok := errors.AsType[*autopilot.PanicError](err); !ok {
				t.Errorf("%v, want a panic", err)
			}
		}
		panics = false
		time.Sleep(time.Minute)
		if got, err := list.Get(t.Context(), project{}, time.Now()); got != 1 || err != nil {
			t.Errorf("%d, %v after the panic", got, err)
		}
		if _, err := points.get(t.Context(), 1, []otc.Series{numbered(1)}, time.Now()); err != nil {
			t.Errorf("%v after the panic", err)
		}
	})
}
