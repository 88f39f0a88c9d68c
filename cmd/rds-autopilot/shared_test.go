package main

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestOneReadingServesAllWhoAskWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		s := shared[int64]{now: time.Now, read: func(context.Context) (int64, error) {
			time.Sleep(100 * time.Millisecond)
			return reads.Add(1), nil
		}}
		ask := func(want int64) {
			t.Helper()
			if got, err := s.get(t.Context()); got != want || err != nil {
				t.Errorf("%d, %v, want %d", got, err, want)
			}
		}
		var all sync.WaitGroup
		for range 400 {
			all.Go(func() { ask(1) })
		}
		all.Wait()
		time.Sleep(time.Second)
		ask(2)
		ask(2)
	})
}

func TestAReadingOutlivesWhoAskedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shared[string]{now: time.Now, read: func(ctx context.Context) (string, error) {
			time.Sleep(time.Second)
			return "read", ctx.Err()
		}}
		hasty, leave := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer leave()
		if _, err := s.get(hasty); err == nil {
			t.Error("no error after the deadline")
		}
		if got, err := s.get(t.Context()); got != "read" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}
