package main

import (
	"context"
	"sync"
	"time"
)

// sharedFor is how long one answer serves all who ask.
const sharedFor = time.Second

// sharedLimit bounds one reading. It belongs to nobody in particular, so nobody's deadline ends it.
const sharedLimit = 30 * time.Second

// shared reads once for all who ask within a second, and never twice at a time. Answers never go back in time.
type shared[T any] struct {
	read func(context.Context) (T, error)
	now  func() time.Time

	mu     sync.Mutex
	latest *reading[T]
}

type reading[T any] struct {
	begun time.Time
	done  chan struct{}
	value T
	err   error
}

func (s *shared[T]) get(ctx context.Context) (T, error) {
	s.mu.Lock()
	r := s.latest
	if r == nil || s.now().Sub(r.begun) >= sharedFor && r.over() {
		r = &reading[T]{begun: s.now(), done: make(chan struct{})}
		s.latest = r
		go func() {
			defer close(r.done)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedLimit)
			defer cancel()
			r.value, r.err = s.read(ctx)
		}()
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (r *reading[T]) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
