package cloud

import (
	"context"
	"sync"
	"time"
)

// A reading that takes long takes many calls, which nothing else can make meanwhile; so it is not begun again at once. Those
// who come until then share the next one.
const (
	restOf   = 4                // times as long as the last reading took
	restMost = 10 * time.Second // however long it took
)

// shared reads once for all callers, and never twice at a time. Each caller says how new the answer must be; answers never
// go back in time. No caller's deadline ends a reading, and it has none of its own: each of its calls ends by itself, and how
// many there are, and how fast they may be made, depends on the cloud.
type shared[T any] struct {
	read func(ctx context.Context, notBefore time.Time) (T, error)
	now  func() time.Time
	// composed of other shared readings: it is no newer than it was asked to be.
	composed bool

	mu     sync.Mutex
	latest *reading[T]
	last   *reading[T]   // that went well, for as long as it is new enough
	rested time.Time     // when the next reading may begin, on the wall clock
	serves time.Duration // see servesFor
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
	notBefore = earlier(notBefore, s.now())
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

// earlier is notBefore, but not later than now: it may be the stamp of another clock, which is ahead, and nothing can be
// read in the future. It is told on now's clock, which never goes back.
func earlier(notBefore, now time.Time) time.Time { return now.Add(min(0, notBefore.Sub(now))) }

// current is the latest reading, or a new one where that is too old and not under way.
func (s *shared[T]) current(ctx context.Context, notBefore time.Time) *reading[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.last; r != nil && !r.begun.Before(notBefore) {
		return r // another one that is under way need not be waited for
	}
	if r := s.latest; r != nil && (!r.over() || !r.begun.Before(notBefore) || r.err != nil && time.Now().Before(s.rested)) {
		return r
	}
	r := &reading[T]{done: make(chan struct{})}
	s.latest = r
	go s.run(context.WithoutCancel(ctx), r, notBefore)
	return r
}

// run reads, once it may. What r holds is for those who saw it end.
func (s *shared[T]) run(ctx context.Context, r *reading[T], notBefore time.Time) {
	defer close(r.done)
	if r.begun = notBefore; !s.composed { // what it is composed of rests by itself
		time.Sleep(time.Until(s.rested))
		r.begun = s.now()
	}
	start := time.Now()
	r.value, r.err = s.read(ctx, r.begun)
	took := time.Since(start)
	rest := min(restOf*took, restMost)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rested = time.Now().Add(rest)
	if r.err == nil {
		s.last, s.serves = r, 2*(took+rest)
	}
}

// servesFor is how long after its begin a reading is new enough, unless there is news. Twice the time until the next may
// begin leaves more than half of the calls that we may make to others, however long a reading takes.
func (s *shared[T]) servesFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serves
}

func (r *reading[T]) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
