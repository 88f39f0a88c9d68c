// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// After a long read, a list rests, so that other callers get requests. Callers during the rest share the next read.
func TestListRestsAfterLongRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		s := newList(time.Now, func(context.Context) (int64, error) {
			time.Sleep(2600 * time.Millisecond) // 13 pages at five per second
			return reads.Add(1), nil
		})
		start := time.Now()
		var all sync.WaitGroup
		for i := range 400 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 30 * time.Second / 400)
				asked := time.Now()
				if _, err := s.Get(t.Context(), project{}, asked); err != nil {
					t.Error(err)
				}
				if waited := time.Since(asked); waited > 16*time.Second {
					t.Errorf("waited %s", waited)
				}
			})
		}
		all.Wait()
		if reads.Load() > 4 {
			t.Errorf("%d readings in %s, want at most 4", reads.Load(), time.Since(start))
		}
	})
}
