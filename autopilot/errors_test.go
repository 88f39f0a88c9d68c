// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryConflictPausesUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		calls := 0
		err := RetryConflict(ctx, func() error {
			calls++
			return fmt.Errorf("write: %w", ErrConflict)
		})
		if !errors.Is(err, ErrConflict) || calls < 100 || calls > 200 {
			t.Errorf("%d calls in ten seconds, and then %v", calls, err)
		}
		for _, want := range []error{nil, ErrGone} {
			calls = 0
			err := RetryConflict(t.Context(), func() error {
				if calls++; calls < 3 {
					return ErrConflict
				}
				return want
			})
			if !errors.Is(err, want) || calls != 3 {
				t.Errorf("after two conflicts and %v: %d calls, %v", want, calls, err)
			}
		}
	})
}
