// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// Errors of the stores that the users of the domain declare. Adapters translate their own errors into these.
var (
	// ErrConflict means that the object has changed since it was read. The caller must read it and decide again.
	ErrConflict = errors.New("changed since it was read")
	// ErrGone means that the object does not exist.
	ErrGone = errors.New("no longer exists")
	// ErrNotRequested means that a step before the request for a change failed, so nothing was requested.
	ErrNotRequested = errors.New("nothing was requested")
	// ErrOutage means that Cloud Eye answers no request now, so no other read can do better.
	ErrOutage = errors.New("no answer of Cloud Eye")
	// ErrKubernetes is in every error of the API server, so that failures can be counted by their cause.
	ErrKubernetes = errors.New("the Kubernetes API failed")
)

// RetryConflict calls try until it returns no ErrConflict, or until ctx ends. It waits 10 to 100 milliseconds
// between two calls: if each write is refused, the API server must not get them without a pause.
func RetryConflict(ctx context.Context, try func() error) error {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := try()
		if !errors.Is(err, ErrConflict) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// RefusedError means that the API server or the cloud received a change and does not allow it.
type RefusedError struct {
	Reason  Reason // empty if the API server refuses
	Message string // the text of the API server or the cloud
}

func (e *RefusedError) Error() string { return "refused: " + e.Message }

// PanicError is a panic that was recovered, so that it affects only the database or the call that caused it.
type PanicError struct {
	What  string // the type of its value and, for an error of the runtime, its text
	Stack string
}

func (e *PanicError) Error() string { return "internal error: panic: " + e.What }

// CatchPanic recovers a panic and stores it as a PanicError. Call it directly by defer. The text of a panic of other
// packages is not kept, because it may contain what a stranger has sent.
func CatchPanic(err *error) {
	p := recover()
	if p == nil {
		return
	}
	what := fmt.Sprintf("%T", p)
	if r, ok := p.(runtime.Error); ok {
		what = r.Error()
	}
	*err = &PanicError{What: what, Stack: string(debug.Stack())}
}
