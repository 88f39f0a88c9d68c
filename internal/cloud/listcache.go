// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
)

const (
	// restFactor is how long a list rests after a reading, as a multiple of the time that the reading took. A long list
	// needs many requests, and the other requests of the service need most of its rate.
	restFactor = 4
	// maxRest is the longest rest. A decision waits for the next reading, so the rest must not grow with the list forever.
	maxRest = 10 * time.Second
	// minUsable is how long even a quick reading or failure is used again, because callers of the same second need only
	// one.
	minUsable = time.Second
)

// listCache reads a list once for all callers and never twice at a time. Each caller says how new the answer must be.
// Answers never go back in time. No caller's context ends a reading, because others may wait for it too. A reading has
// no deadline of its own either: each of its requests has one, and their number depends on the cloud.
type listCache[T any] struct {
	read func(ctx context.Context, notBefore time.Time) (T, error)
	now  func() time.Time
	// composed marks a list that is read from other caches, which rest by themselves. It is as new as it was requested,
	// so that the other caches can answer it with what they have.
	composed bool

	mu       sync.Mutex
	latest   *reading[T]
	lastGood *reading[T]   // the latest that succeeded
	nextAt   time.Time     // when the next reading may begin
	usable   time.Duration // see usableFor
}

type reading[T any] struct {
	begun time.Time
	done  chan struct{} // closed when the other fields are set
	value T
	err   error
}

// get returns the list as of notBefore or later. A notBefore in the future means now. A failure is returned to all
// callers until the next reading may begin, because a decision must not wait for a service that has just failed.
func (c *listCache[T]) get(ctx context.Context, notBefore time.Time) (T, error) {
	notBefore = notAfter(notBefore, c.now())
	for {
		r := c.current(ctx, notBefore)
		select {
		case <-r.done:
			if r.err != nil || !r.begun.Before(notBefore) {
				return r.value, r.err
			}
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}

// newest returns the last list that could be read, however old; ok is false if there is none.
func (c *listCache[T]) newest() (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastGood == nil {
		return value, false
	}
	return c.lastGood.value, true
}

// notAfter returns notBefore, or now if that is earlier. A time stamp of another machine may be ahead of our clock, and
// a list cannot be read in the future. The result has now's monotonic clock reading.
func notAfter(notBefore, now time.Time) time.Time { return now.Add(min(0, notBefore.Sub(now))) }

// current returns the reading to wait for: the last good one, the one in progress, or a new one.
func (c *listCache[T]) current(ctx context.Context, notBefore time.Time) *reading[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.lastGood; r != nil && !r.begun.Before(notBefore) {
		return r
	}
	if r := c.latest; r != nil && (!r.over() || r.err != nil && time.Now().Before(c.nextAt)) {
		return r
	}
	r := &reading[T]{done: make(chan struct{})}
	c.latest = r
	go c.run(context.WithoutCancel(ctx), r, notBefore)
	return r
}

// run waits until a reading may begin, and reads.
func (c *listCache[T]) run(ctx context.Context, r *reading[T], notBefore time.Time) {
	defer close(r.done)
	r.begun = notBefore
	if !c.composed {
		time.Sleep(time.Until(c.nextAt))
		r.begun = c.now()
	}
	start := time.Now()
	r.value, r.err = safely(func() (T, error) { return c.read(ctx, r.begun) })
	took := time.Since(start)
	rest := min(restFactor*took, maxRest)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.err != nil {
		c.nextAt = time.Now().Add(max(rest, minUsable))
		return
	}
	c.nextAt = time.Now().Add(rest)
	c.lastGood = r
	c.usable = max(minUsable, 2*(took+rest))
}

// usableFor returns how long after its begin a reading is new enough for callers without news. It is twice the time
// from one reading to the next, which leaves more than half of the service's rate to other requests.
func (c *listCache[T]) usableFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usable
}

// safely calls a read. A panic becomes its error for all callers that wait for it. The read runs on a goroutine of its
// own, so a panic would otherwise end the process.
func safely[T any](read func() (T, error)) (value T, err error) {
	defer autopilot.CatchPanic(&err)
	return read()
}

func (r *reading[T]) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
