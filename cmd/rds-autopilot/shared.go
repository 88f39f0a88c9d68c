package main

import (
	"context"
	"sync"
	"time"
)

// sharedLimit bounds one reading. It belongs to nobody in particular, so nobody's deadline ends it.
const sharedLimit = time.Minute

// A reading that takes long takes many calls, which nothing else can make meanwhile; so it is not begun again at once. Who
// comes until then is served together.
const (
	restOf   = 4                // times as long as the last reading took
	restMost = 10 * time.Second // however long it took
)

// shared reads once for all who ask, and never twice at a time. Who asks says how new the answer must be; answers never
// go back in time.
type shared[T any] struct {
	read func(ctx context.Context, notBefore time.Time) (T, error)
	now  func() time.Time
	// composed of other shared readings: it is no newer than it was asked to be.
	composed bool

	mu     sync.Mutex
	latest *reading[T]
	rested time.Time // when the next reading may begin, on the wall clock
}

type reading[T any] struct {
	begun time.Time
	done  chan struct{}
	value T
	err   error
}

// get returns what was read at that time or later. A failure is as good an answer as any: who asks for newer, asks again.
func (s *shared[T]) get(ctx context.Context, notBefore time.Time) (T, error) {
	for {
		r := s.current(ctx, notBefore)
		select {
		case <-r.done:
			if !r.begun.Before(notBefore) {
				return r.value, r.err
			}
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}

// current is the latest reading, or a new one where that is too old and not under way.
func (s *shared[T]) current(ctx context.Context, notBefore time.Time) *reading[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.latest; r != nil && (!r.over() || !r.begun.Before(notBefore)) {
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
	ctx, cancel := context.WithTimeout(ctx, sharedLimit)
	defer cancel()
	start := time.Now()
	r.value, r.err = s.read(ctx, r.begun)
	s.rested = time.Now().Add(min(restOf*time.Since(start), restMost))
}

func (r *reading[T]) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
