// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// askLimit bounds a call, including its wait for the calls before it.
	askLimit = 15 * time.Second
	// errorKept is the longest time that an error is cached.
	errorKept = 30 * time.Second
)

// answers caches the results of calls to the cloud or to the API server by database. It makes one call at a time, and
// concurrent requests for the same database share one. A call continues after its requester has gone, for the benefit
// of the next one.
type answers[T any] struct {
	ask  func(ctx context.Context, namespace, name string) (T, error)
	keep time.Duration
	now  func() time.Time
	log  *zap.Logger
	slot chan struct{} // held during a call

	mu   sync.Mutex
	kept map[[2]string]*kept[T]
}

type kept[T any] struct {
	done  chan struct{} // closed after the other fields are set
	value T
	err   error
	until time.Time
}

func newAnswers[T any](o Options, ask func(ctx context.Context, namespace, name string) (T, error),
	keep time.Duration) *answers[T] {
	return &answers[T]{ask: ask, keep: keep, now: o.Now, log: o.Log, slot: make(chan struct{}, 1),
		kept: map[[2]string]*kept[T]{}}
}

// of returns the cached result, or waits for the call at most for patience.
func (a *answers[T]) of(ctx context.Context, namespace, name string, patience time.Duration) (T, error) {
	k := a.get(ctx, [2]string{namespace, name})
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var none T
	select {
	case <-k.done:
		return k.value, k.err
	case <-timer.C:
		return none, errors.New("no answer yet; try again")
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func (a *answers[T]) get(ctx context.Context, key [2]string) *kept[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	for other, k := range a.kept {
		if !k.until.IsZero() && a.now().After(k.until) {
			delete(a.kept, other)
		}
	}
	if k := a.kept[key]; k != nil {
		return k
	}
	k := &kept[T]{done: make(chan struct{})}
	a.kept[key] = k
	go a.fetch(context.WithoutCancel(ctx), key, k)
	return k
}

func (a *answers[T]) fetch(ctx context.Context, key [2]string, k *kept[T]) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var value T
	err := errors.New("too many requests are waiting; try again")
	select {
	case a.slot <- struct{}{}:
		value, err = a.call(ctx, key)
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	k.value, k.err, k.until = value, err, a.now().Add(a.keep)
	if err != nil {
		k.until = a.now().Add(min(a.keep, errorKept))
	}
	close(k.done)
}

// call makes a call and frees the slot. A panic in this goroutine would end the process, so it becomes an error.
func (a *answers[T]) call(ctx context.Context, key [2]string) (value T, err error) {
	defer func() { <-a.slot }()
	defer recovered(a.log, &err)
	return a.ask(ctx, key[0], key[1])
}

// recovered logs a panic of the function that has deferred it, and sets that function's error.
func recovered(log *zap.Logger, err *error) {
	if p := recover(); p != nil {
		text := fmt.Sprintf("%T", p) // not its text, which may be the cloud's
		if e, ok := p.(runtime.Error); ok {
			text = e.Error()
		}
		log.Error("panic on the status page", zap.String("panic", text), zap.Stack("stack"))
		*err = errors.New("internal error; the reason is in the log")
	}
}
