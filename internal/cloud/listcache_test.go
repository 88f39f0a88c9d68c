// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestListCacheSharesReadingThatIsNewEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		s := listCache[int64]{now: time.Now, read: func(context.Context, time.Time) (int64, error) {
			time.Sleep(100 * time.Millisecond)
			return reads.Add(1), nil
		}}
		ask := func(notBefore time.Time, want int64) {
			t.Helper()
			if got, err := s.get(t.Context(), notBefore); got != want || err != nil {
				t.Errorf("%d, %v, want %d", got, err, want)
			}
		}
		start := time.Now()
		var all sync.WaitGroup
		for range 400 {
			all.Go(func() { ask(start, 1) })
		}
		all.Wait()
		ask(start, 1)
		ask(start.Add(-time.Hour), 1)
		ask(time.Now(), 2)
		ask(start, 2) // never back in time
	})
}

func TestListCacheReadsAgainForNewerNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads, atOnce atomic.Int64
		s := listCache[int64]{now: time.Now, read: func(context.Context, time.Time) (int64, error) {
			if atOnce.Add(1) > 1 {
				t.Error("two readings at a time")
			}
			defer atOnce.Add(-1)
			time.Sleep(time.Second)
			return reads.Add(1), nil
		}}
		go func() { _, _ = s.get(t.Context(), time.Now()) }()
		time.Sleep(500 * time.Millisecond)
		if got, err := s.get(t.Context(), time.Now()); got != 2 || err != nil {
			t.Errorf("%d, %v, want the second reading", got, err)
		}
	})
}

func TestListCacheReadingOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := listCache[string]{now: time.Now, read: func(ctx context.Context, _ time.Time) (string, error) {
			time.Sleep(time.Second)
			return "read", ctx.Err()
		}}
		start := time.Now()
		hasty, leave := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer leave()
		if _, err := s.get(hasty, start); err == nil {
			t.Error("no error after the deadline")
		}
		if got, err := s.get(t.Context(), start); got != "read" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A list of many pages, asked for by one after the other, must leave calls for others: callers that come while it rests are
// served together.
func TestListCacheRestsAfterLongReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		s := listCache[int64]{now: time.Now, read: func(context.Context, time.Time) (int64, error) {
			time.Sleep(2600 * time.Millisecond) // 13 pages at five per second
			return reads.Add(1), nil
		}}
		start := time.Now()
		var all sync.WaitGroup
		for i := range 400 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 30 * time.Second / 400)
				asked := time.Now()
				if _, err := s.get(t.Context(), asked); err != nil {
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

func TestListCacheUsesQuickReadingForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := listCache[int]{now: time.Now, read: func(context.Context, time.Time) (int, error) { return 1, nil }}
		if _, err := s.get(t.Context(), time.Now()); err != nil || s.usableFor() != time.Second {
			t.Errorf("it serves for %s, %v; want a second", s.usableFor(), err)
		}
	})
}

// A decision has the signal to go by: it must not wait for a service that has just failed to fail once more.
func TestListCacheReturnsFailureUntilNextReadingMayBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		ill := true
		s := listCache[int64]{now: time.Now, read: func(context.Context, time.Time) (int64, error) {
			time.Sleep(5 * time.Second)
			if ill {
				return 0, errors.New("ill")
			}
			return reads.Add(1), nil
		}}
		go func() { _, _ = s.get(t.Context(), time.Now()) }()
		time.Sleep(time.Second)
		asked := time.Now()
		for range 2 {
			if _, err := s.get(t.Context(), time.Now()); err == nil {
				t.Error("no error of a reading that failed")
			}
		}
		if waited := time.Since(asked); waited > 5*time.Second {
			t.Errorf("waited %s for an error that was under way", waited)
		}
		ill = false
		time.Sleep(maxRest)
		if got, err := s.get(t.Context(), time.Now()); got != 1 || err != nil {
			t.Errorf("%d, %v after the rest, want a new reading", got, err)
		}
	})
}
