// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/internal/shared"
)

const (
	// askLimit bounds a call, including its wait for the calls before it.
	askLimit = 15 * time.Second
	// errorKept is the longest time that an error is cached.
	errorKept = 30 * time.Second
)

// errNoAnswer reports that a call takes longer than the page waits for it.
var errNoAnswer = errors.New("no answer yet; try again")

// answers caches the results of calls to the cloud or to the API server by database. It makes one call at a time, and
// concurrent requests for the same database share one. A call continues after its requester has gone, for the benefit
// of the next one.
type answers[T any] struct {
	reads *shared.Reads[[2]string, T] // by namespace and name
}

func newAnswers[T any](o Options, ask func(ctx context.Context, namespace, name string) (T, error),
	keep time.Duration) *answers[T] {
	slot := make(chan struct{}, 1) // held during a call
	read := func(ctx context.Context, key [2]string, _ time.Time) (value T, asOf time.Time, err error) {
		ctx, cancel := context.WithTimeout(ctx, askLimit)
		defer cancel()
		select {
		case slot <- struct{}{}:
		case <-ctx.Done():
			return value, asOf, errors.New("too many requests are waiting; try again")
		}
		defer func() { <-slot }()
		defer recovered(o.Log, &err) // which logs the stack
		value, err = ask(ctx, key[0], key[1])
		return value, o.Now(), err
	}
	rest := func(_ time.Duration, err error) time.Duration {
		if err != nil {
			return min(keep, errorKept)
		}
		return 0
	}
	return &answers[T]{&shared.Reads[[2]string, T]{Read: read, Now: o.Now, Rest: rest, Keep: keep}}
}

// of returns the cached result, or waits for the call at most for patience.
func (a *answers[T]) of(ctx context.Context, namespace, name string, patience time.Duration) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNoAnswer)
	defer cancel()
	return a.reads.Get(ctx, [2]string{namespace, name}, a.reads.Now().Add(-a.reads.Keep))
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
