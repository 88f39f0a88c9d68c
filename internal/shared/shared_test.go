// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counter counts its reads, each of which takes a second.
type counter struct {
	reads, running atomic.Int64
	err            error // of the next reads
	panics         bool
}

// all returns Reads of the counter.
func (c *counter) all(t *testing.T) *Reads[string, int64] {
	return &Reads[string, int64]{Now: time.Now, Read: func(ctx context.Context, _ string, _ time.Time) (int64, time.Time,
		error) {
		if c.running.Add(1) > 1 {
			t.Error("two reads of a key at a time")
		}
		defer c.running.Add(-1)
		begun := time.Now()
		time.Sleep(time.Second)
		n := c.reads.Add(1)
		if c.panics {
			panic("foreign text")
		}
		return n, begun, errors.Join(c.err, ctx.Err())
	}}
}

// expectGet fails the test unless Get returns want, and an error if fails is set.
func expectGet(t *testing.T, r *Reads[string, int64], notBefore time.Time, want int64, fails bool) {
	t.Helper()
	if got, err := r.Get(t.Context(), "key", notBefore); got != want && !fails || (err != nil) != fails {
		t.Errorf("%d, %v; want %d, an error: %t", got, err, want, fails)
	}
}

func TestGetSharesAReadThatIsNewEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := (&counter{}).all(t)
		start := time.Now()
		var all sync.WaitGroup
		for range 400 {
			all.Go(func() { expectGet(t, r, start, 1, false) })
		}
		all.Wait()
		expectGet(t, r, start, 1, false)
		expectGet(t, r, time.Time{}, 1, false)
		expectGet(t, r, time.Now().Add(time.Hour), 2, false) // means now
		expectGet(t, r, start, 2, false)                     // never back in time
	})
}

func TestGetReadsAgainIfTheRunningReadIsTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := (&counter{}).all(t)
		go func() { _, _ = r.Get(t.Context(), "key", time.Now()) }()
		time.Sleep(500 * time.Millisecond)
		expectGet(t, r, time.Now(), 2, false)
	})
}

func TestReadContinuesWithoutItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, start := (&counter{}).all(t), time.Now()
		left := errors.New("left")
		hasty, leave := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, left)
		defer leave()
		if _, err := r.Get(hasty, "key", start); !errors.Is(err, left) {
			t.Errorf("%v, want the cause of the context", err)
		}
		expectGet(t, r, start, 1, false)
	})
}

func TestFailureIsReturnedOnlyDuringItsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{}
		r := c.all(t)
		r.Rest = func(took time.Duration, err error) time.Duration {
			if err == nil {
				return 0
			}
			return 3 * took
		}
		expectGet(t, r, time.Now(), 1, false)
		read := time.Now()
		c.err = errors.New("failed")
		for range 2 {
			expectGet(t, r, time.Now(), 0, true)
		}
		if took := time.Since(read); took != time.Second || c.reads.Load() != 2 {
			t.Errorf("two failures took %s and %d reads", took, c.reads.Load()-1)
		}
		if last, ok := r.Last("key"); !ok || last.Value != 1 || last.Took != time.Second {
			t.Errorf("the last value is %+v", last)
		}
		c.err = nil
		time.Sleep(3 * time.Second)
		expectGet(t, r, time.Now(), 3, false)
	})
}

func TestPeekNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{}
		r, start := c.all(t), time.Now()
		if _, ok, _ := r.Peek("key", start); ok {
			t.Error("a value before the first read")
		}
		expectGet(t, r, start, 1, false)
		if got, ok, err := r.Peek("key", start); got != 1 || !ok || err != nil {
			t.Errorf("%d, %t, %v; want the value", got, ok, err)
		}
		if _, ok, _ := r.Peek("key", time.Now()); ok || c.reads.Load() != 1 {
			t.Errorf("a value that is too old, after %d reads", c.reads.Load())
		}
	})
}

func TestPanicOfAReadIsAnErrorWithoutItsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := (&counter{panics: true}).all(t)
		if _, err := r.Get(t.Context(), "key", time.Now()); err == nil || strings.Contains(err.Error(), "foreign") {
			t.Error(err)
		}
	})
}

func TestUnusedValuesAndErrorsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{}
		r := c.all(t)
		r.Keep = time.Minute
		expectGet(t, r, time.Now(), 1, false)
		time.Sleep(59 * time.Second)
		expectGet(t, r, time.Time{}, 1, false)
		c.err = errors.New("failed")
		for kept := 1; kept >= 0; kept-- { // another read, which takes a second and fails, ends after 59 and 118 seconds
			time.Sleep(58 * time.Second)
			if _, err := r.Get(t.Context(), "other", time.Now()); err == nil || len(r.entries) != kept {
				t.Errorf("%v; %d entries are kept, want %d", err, len(r.entries), kept)
			}
		}
	})
}
