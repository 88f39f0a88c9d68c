// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"sync"
	"time"
)

// A reading that takes long takes many calls, which nothing else can make meanwhile; so it is not begun again at once. Callers
// that come until then share the next one. A quick one is shared for a while, too: it costs both sides something.
const (
	restFactor = 4                // times as long as the last reading took
	maxRest    = 10 * time.Second // however long it took
	minUsable  = time.Second      // however quick it was
	// unusedFor is how long a reading is kept that nobody asks for: between two sweeps it would take a tenth of our memory.
	unusedFor = time.Minute
)

// shared reads once for all callers, and never twice at a time. Each caller says how new the answer must be; answers never
// go back in time. No caller's deadline ends a reading, and it has none of its own: each of its calls ends by itself, and how
// many there are, and how fast they may be made, depends on the cloud.
type shared[T any] struct {
	read func(ctx context.Context, notBefore time.Time) (T, error)
	now  func() time.Time
	// composed of other shared readings: it is no newer than it was asked to be.
	composed bool

	mu       sync.Mutex
	latest   *reading[T]
	lastGood *reading[T]   // that went well
	nextAt   time.Time     // when the next reading may begin, on the wall clock
	usable   time.Duration // see usableFor
	unused   *time.Timer   // forgets what was read
}

type reading[T any] struct {
	begun time.Time
	done  chan struct{}
	value T
	err   error
}

// get returns what was read at that time or later. A failure is an answer until the next reading may begin: callers have
// something else to go by, and should not wait for what will fail again.
func (s *shared[T]) get(ctx context.Context, notBefore time.Time) (T, error) {
	notBefore = notAfter(notBefore, s.now())
	for {
		r := s.current(ctx, notBefore)
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

// notAfter is notBefore, but not later than now: it may be the stamp of another clock, which is ahead, and nothing can be
// read in the future. It is on now's clock, which never goes back.
func notAfter(notBefore, now time.Time) time.Time { return now.Add(min(0, notBefore.Sub(now))) }

// current is the reading to wait for: the last good one, the one under way, or a new one.
func (s *shared[T]) current(ctx context.Context, notBefore time.Time) *reading[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.lastGood; r != nil && !r.begun.Before(notBefore) {
		s.unused.Reset(unusedFor)
		return r // another one that is under way need not be waited for
	}
	if r := s.latest; r != nil && (!r.over() || !r.begun.Before(notBefore) || r.err != nil && time.Now().Before(s.nextAt)) {
		return r
	}
	r := &reading[T]{done: make(chan struct{})}
	s.latest = r
	go s.run(context.WithoutCancel(ctx), r, notBefore)
	return r
}

// run reads, once it may. r is complete when its channel is closed, and not before.
func (s *shared[T]) run(ctx context.Context, r *reading[T], notBefore time.Time) {
	defer close(r.done)
	if r.begun = notBefore; !s.composed { // what it is composed of rests by itself
		time.Sleep(time.Until(s.nextAt))
		r.begun = s.now()
	}
	start := time.Now()
	r.value, r.err = s.read(ctx, r.begun)
	took := time.Since(start)
	rest := min(restFactor*took, maxRest)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextAt = time.Now().Add(rest)
	if r.err != nil {
		return
	}
	s.lastGood, s.usable = r, max(minUsable, 2*(took+rest))
	if s.unused == nil {
		s.unused = time.AfterFunc(unusedFor, s.forget)
	} else {
		s.unused.Reset(unusedFor)
	}
}

// forget drops what was read.
func (s *shared[T]) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastGood = nil
	if s.latest != nil && s.latest.over() {
		s.latest = nil
	}
}

// usableFor is how long after its begin a reading is new enough, unless there is news. Twice the time until the next may
// begin leaves more than half of the calls that we may make to others, however long a reading takes.
func (s *shared[T]) usableFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usable
}

func (r *reading[T]) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
