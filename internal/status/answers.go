// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	askLimit  = 15 * time.Second // for those before it and for who is asked
	errorKept = 30 * time.Second // at most
)

// answers asks the cloud about one database at a time, or the API server, and keeps each answer for a while: people who reload
// cost nothing, and what was asked for is there for the next one, too, if the first has gone.
type answers[T any] struct {
	ask  func(ctx context.Context, namespace, name string) (T, error)
	keep time.Duration
	now  func() time.Time
	slot chan struct{} // held by whoever asks

	mu   sync.Mutex
	kept map[[2]string]*kept[T]
}

type kept[T any] struct {
	done  chan struct{} // closed once the others are set
	value T
	err   error
	until time.Time
}

func newAnswers[T any](ask func(ctx context.Context, namespace, name string) (T, error), keep time.Duration, now func() time.Time) *answers[T] {
	return &answers[T]{ask: ask, keep: keep, now: now, slot: make(chan struct{}, 1), kept: map[[2]string]*kept[T]{}}
}

// of waits for the answer, but not longer than that.
func (a *answers[T]) of(ctx context.Context, namespace, name string, patience time.Duration) (T, error) {
	k := a.get(ctx, [2]string{namespace, name})
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var none T
	select {
	case <-k.done:
		return k.value, k.err
	case <-timer.C:
		return none, errors.New("there is no answer yet; try again")
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
	err := errors.New("others wait too; try again")
	select {
	case a.slot <- struct{}{}:
		value, err = a.ask(ctx, key[0], key[1])
		<-a.slot
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
