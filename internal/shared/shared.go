// SPDX-License-Identifier: Apache-2.0

// Package shared lets one read serve all callers that need the same answer at about the same time. It knows neither
// what is read nor from where, and imports the standard library alone, so that every package may import it.
package shared

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Reads reads values by key, and never reads a key twice at a time. Each caller says how new its answer must be.
// Answers never go back in time. Set the exported fields before the first call. Reads is safe for concurrent use.
type Reads[K comparable, V any] struct {
	// Read reads the value of a key, and returns the time as of which it is true, which is notBefore or later. No caller's
	// context ends ctx, because others may wait too, so Read must limit its time. A panic of Read becomes its error.
	Read func(ctx context.Context, key K, notBefore time.Time) (V, time.Time, error)
	// Now is the clock of notBefore, Rest and Keep.
	Now func() time.Time
	// Rest returns how long the next read of a key waits after one that took so long. Until then, all callers get the
	// error if that read failed. If Rest is nil, no read waits.
	Rest func(took time.Duration, err error) time.Duration
	// Keep is how long a value is kept after its last use, at least until the next read of any key. If it is zero, values
	// are kept forever. Errors are kept for the time of Rest only.
	Keep time.Duration

	mu      sync.Mutex
	entries map[K]*entry[V]
}

// Value is the result of a read that succeeded.
type Value[V any] struct {
	Value V
	AsOf  time.Time
	Took  time.Duration
}

type entry[V any] struct {
	running, good, failed *read[V] // failed is nil if the last read succeeded
	next                  time.Time
	used                  time.Time
}

type read[V any] struct {
	Value[V]
	err  error
	done chan struct{} // closed when the other fields are set
}

// Get returns the value of a key as of notBefore or later. A notBefore in the future means now, because the clock of
// another machine may be ahead. Get reads the value if no read since notBefore has succeeded, and waits at most until
// ctx is done. The error is that of the read, or the cause of ctx. Callers share the value and must not modify it.
func (r *Reads[K, V]) Get(ctx context.Context, key K, notBefore time.Time) (V, error) {
	notBefore = r.notAfterNow(notBefore)
	for {
		x := r.current(ctx, key, notBefore)
		select {
		case <-x.done:
			if x.err != nil || !x.AsOf.Before(notBefore) {
				return x.Value.Value, x.err
			}
		case <-ctx.Done():
			var none V
			return none, context.Cause(ctx)
		}
	}
}

// Peek returns what Get would return without a read; ok is false if Get would have to wait. It is no use of the value.
func (r *Reads[K, V]) Peek(key K, notBefore time.Time) (value V, ok bool, err error) {
	notBefore = r.notAfterNow(notBefore)
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[key]; e != nil {
		if x := e.ready(notBefore, r.Now()); x != nil {
			return x.Value.Value, true, x.err
		}
	}
	return value, false, nil
}

// Last returns the last value of a key that was read, however old. ok is false if there is none.
func (r *Reads[K, V]) Last(key K) (value Value[V], ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[key]; e != nil && e.good != nil {
		return e.good.Value, true
	}
	return value, false
}

// notAfterNow returns notBefore, or now if that is earlier, with now's monotonic clock reading.
func (r *Reads[K, V]) notAfterNow(notBefore time.Time) time.Time {
	now := r.Now()
	return now.Add(min(0, notBefore.Sub(now)))
}

// current returns the read to wait for: one that is over, the running one, or a new one.
func (r *Reads[K, V]) current(ctx context.Context, key K, notBefore time.Time) *read[V] {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[key]
	if e == nil {
		e = &entry[V]{}
		if r.entries == nil {
			r.entries = make(map[K]*entry[V])
		}
		r.entries[key] = e
	}
	e.used = r.Now()
	if x := e.ready(notBefore, e.used); x != nil {
		return x
	}
	if e.running == nil {
		e.running = &read[V]{done: make(chan struct{})}
		go r.run(context.WithoutCancel(ctx), key, notBefore, e, e.running, e.next.Sub(e.used))
	}
	return e.running
}

// ready returns the last good read if it is new enough, or the one that has just failed; nil if a caller must wait.
func (e *entry[V]) ready(notBefore, now time.Time) *read[V] {
	switch {
	case e.good != nil && !e.good.AsOf.Before(notBefore):
		return e.good
	case e.running == nil && e.failed != nil && now.Before(e.next):
		return e.failed
	}
	return nil
}

// run reads a value after the rest of the read before it. A panic on its goroutine would end the process.
func (r *Reads[K, V]) run(ctx context.Context, key K, notBefore time.Time, e *entry[V], x *read[V], rest time.Duration) {
	defer close(x.done)
	time.Sleep(rest)
	start := r.Now()
	func() {
		defer func() {
			if p := recover(); p != nil {
				x.err = fmt.Errorf("panic: %T", p) // not its text, which may contain what a stranger has sent
			}
		}()
		x.Value.Value, x.AsOf, x.err = r.Read(ctx, key, notBefore)
	}()
	end := r.Now()
	x.Took = end.Sub(start)
	r.mu.Lock()
	defer r.mu.Unlock()
	e.running, e.failed, e.next = nil, nil, end
	if r.Rest != nil {
		e.next = e.next.Add(r.Rest(x.Took, x.err))
	}
	if x.err == nil {
		e.good = x
	} else {
		e.failed = x
	}
	r.forget()
}

// forget removes errors after their rest, and values that were not used for Keep. The caller holds r.mu.
func (r *Reads[K, V]) forget() {
	now := r.Now()
	for key, e := range r.entries {
		unused := r.Keep > 0 && now.Sub(e.used) >= r.Keep
		if e.running == nil && !now.Before(e.next) && (e.good == nil || unused) {
			delete(r.entries, key)
		}
	}
}
