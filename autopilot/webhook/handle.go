// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
)

func (r *Receiver) post(w http.ResponseWriter, req *http.Request) {
	start := r.Now()
	// What was begun is finished even if the sender hangs up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), r.time)
	defer cancel()
	o := r.handle(ctx, w, req)
	o.answer(w)
	now := r.Now()
	r.meters.count(o.typ, o.result, now.Sub(start), now)
	o.log(r.Log)
}

// handle reads a message and works on it until it is done or time is up. Work that ignores its context goes on after the
// answer and keeps its slot, so there is never more of it than slots.
func (r *Receiver) handle(ctx context.Context, w http.ResponseWriter, req *http.Request) outcome {
	body, free, early := r.readBody(ctx, w, req)
	if early.result != "" {
		return early
	}
	markComplete(req.Context())
	if !acquire(ctx, r.slots) {
		free()
		return outcome{result: resultUnavailable, err: errors.New("too many messages at a time")}
	}
	done := make(chan outcome, 1)
	go func() {
		defer free()
		defer r.slots.Release(1)
		done <- r.receive(ctx, body, req.Header)
	}()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	late := time.NewTimer(graceTime)
	defer late.Stop()
	select {
	case o := <-done:
		return o
	case <-late.C:
		return outcome{result: resultUnavailable, err: errors.New("the work was not done in time")}
	}
}

// receive works on a message. A panic does not end the process: it is counted, and the message may come again.
func (r *Receiver) receive(ctx context.Context, body []byte, headers http.Header) (o outcome) {
	m := &message{body: body, headers: headers}
	defer func() {
		if p := recover(); p != nil {
			r.meters.panics.Inc()
			o.result, o.err = resultUnavailable, fmt.Errorf("panic: %T", p) // its text may be the sender's
			r.Log.Error("panic while receiving", zap.Error(o.err), zap.Stack("stack"))
		}
		o.typ, o.id, o.target = m.envelope.Type, m.envelope.MessageID, m.target
	}()
	defer func() {
		if m.target.IsDoctors() {
			r.capture(ctx, m, o)
		}
	}()
	if o.result, o.err = r.runChecks(ctx, m); o.result != "" {
		return o
	}
	if m.target.IsDoctors() && m.envelope.Type == smn.TypeNotification && r.askAgain(ctx, m) {
		o.result, o.err = resultUnavailable, errAskedAgain
		return o
	}
	switch m.envelope.Type {
	case smn.TypeConfirmation:
		o.result, o.err = r.confirm(ctx, m)
	case smn.TypeUnsubscribed:
		o.result, o.err = r.storeSubscription(ctx, m, resultStored)
	default:
		o.result, o.err = r.storeAlarm(ctx, m)
	}
	return o
}

// readBody reads the body within its limits; free gives back what it holds. If the outcome has a result, it is final.
func (r *Receiver) readBody(ctx context.Context, w http.ResponseWriter, req *http.Request) (body []byte, free func(), o outcome) {
	free = func() {}
	limited := http.MaxBytesReader(w, req.Body, MaxBody)
	if req.ContentLength > MaxBody {
		_, _ = io.Copy(io.Discard, limited) // a sender that is answered before it has sent everything may see a cut connection
		return nil, free, outcome{result: resultTooLarge, err: errors.New("its Content-Length is too large")}
	}
	read := bytes.NewBuffer(make([]byte, 0, min(max(req.ContentLength, 0), smallBody)+bytes.MinRead)) // for most it need not grow
	_, err := read.ReadFrom(io.LimitReader(limited, smallBody))
	if body = read.Bytes(); err == nil && len(body) == smallBody {
		markLarge(req.Context(), largeSlots)
		if !acquire(ctx, r.large) {
			_, _ = io.Copy(io.Discard, limited)
			return nil, free, outcome{result: resultUnavailable, err: errors.New("too many large messages at a time")}
		}
		free = func() { r.large.Release(1) }
		var rest []byte
		rest, err = io.ReadAll(limited)
		body = append(body, rest...)
	}
	if err == nil {
		return body, free, o
	}
	free()
	o = outcome{result: resultUnavailable, err: fmt.Errorf("read the body: %w", err)}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		o.result = resultTooLarge
	}
	return nil, func() {}, o
}

// lookups bounds how often the API server is asked for what the cache lacks, and how many messages wait for that.
type lookups struct {
	places *semaphore.Weighted
	rate   *rate.Limiter
}

func newLookups() lookups {
	return lookups{semaphore.NewWeighted(lookupPlaces), rate.NewLimiter(lookupsPerSec, lookupsPerSec)}
}

// begin waits until one more look-up may be made; end frees its place.
func (l lookups) begin(ctx context.Context) (end func(), err error) {
	if !l.places.TryAcquire(1) {
		return nil, errors.New("too many at a time")
	}
	end = func() { l.places.Release(1) }
	if err := l.rate.Wait(ctx); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// acquire takes one place, waiting for slotWait at most. It reports whether it got one.
func acquire(ctx context.Context, s *semaphore.Weighted) bool {
	if s.TryAcquire(1) {
		return true
	}
	wait, done := context.WithTimeout(ctx, slotWait)
	defer done()
	return s.Acquire(wait, 1) == nil
}
