package main

import (
	"context"
	"sync"
	"time"
)

// sharedLimit bounds one reading. It belongs to nobody in particular, so nobody's deadline ends it.
const sharedLimit = time.Minute

// shared reads once for all who ask, and never twice at a time. Who asks says how new the answer must be; answers never
// go back in time.
type shared[T any] struct {
	read func(ctx context.Context, notBefore time.Time) (T, error)
	now  func() time.Time
	// composed of other shared readings: it is no newer than it was asked to be.
	composed bool

	mu     sync.Mutex
	latest *reading[T]
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
	if r := s.latest; r != nil && (!r.begun.Before(notBefore) || !r.over()) {
		return r
	}
	r := &reading[T]{begun: s.now(), done: make(chan struct{})}
	if s.composed {
		r.begun = notBefore
	}
	s.latest = r
	go func() {
		defer close(r.done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedLimit)
		defer cancel()
		r.value, r.err = s.read(ctx, r.begun)
	}()
	return r
}

func (r *reading[T]) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
