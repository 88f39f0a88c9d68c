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

	"github.com/mcsps/rds-autopilot/autopilot/smn"
)

func (r *Receiver) post(w http.ResponseWriter, req *http.Request) {
	start := r.Now()
	// A sender that disconnects does not cancel the work: the signal is stored all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), r.time)
	defer cancel()
	o := r.handle(ctx, w, req)
	o.answer(w)
	r.meters.count(o.typ, o.result, r.Now().Sub(start))
	if o.result.isNew() || !o.isRepeat && r.lines.allow(r.Log, o.result) {
		o.log(r.Log)
	}
}

// handle reads a message and works on it. Each part of the work returns when the context ends, so the answer is in
// time.
func (r *Receiver) handle(ctx context.Context, w http.ResponseWriter, req *http.Request) outcome {
	body, free, refused := r.readBody(ctx, w, req)
	defer free()
	if refused.result != "" {
		return refused
	}
	markComplete(req.Context())
	if !acquire(ctx, r.slots) {
		// If the API server is the cause, the messages in progress end as unavailable.
		return outcome{result: resultLimited, err: errors.New("too many messages at a time")}
	}
	defer r.slots.Release(1)
	deadline, _ := ctx.Deadline()
	late := time.Until(deadline) < r.time-lateStart
	o := r.receive(ctx, body)
	if late && o.result == resultUnavailable {
		o.result = resultIncomplete
	}
	return o
}

// receive checks and stores a message. It counts a panic and answers 503, so the process continues and SMN repeats the
// message.
func (r *Receiver) receive(ctx context.Context, body []byte) (o outcome) {
	m := &message{body: body}
	defer func() {
		if p := recover(); p != nil {
			r.meters.panics.Inc()
			o.result, o.err = resultUnavailable, fmt.Errorf("panic: %T", p) // not its text, which may be the sender's
			if r.lines.allow(r.Log, linePanic) {
				r.Log.Error("panic while receiving", zap.Error(o.err), zap.Stack("stack"))
			}
		}
		o.typ, o.id, o.target = m.envelope.Type, m.envelope.MessageID, m.target
	}()
	if o = r.runChecks(ctx, m); o.result != "" {
		o.isRepeat = r.reportForeign(m, o.result, o.err)
		return o
	}
	switch m.envelope.Type {
	case smn.TypeConfirmation:
		o.result, o.err = r.confirm(ctx, m)
	case smn.TypeUnsubscribed: // the next sweep subscribes again
		o.result = resultIgnored
	default:
		o.result, o.err = r.storeAlarm(ctx, m)
	}
	return o
}

// readBody reads the body within its limits. The caller calls free when it no longer needs the body. A result in the
// outcome ends the work.
func (r *Receiver) readBody(
	ctx context.Context, w http.ResponseWriter, req *http.Request,
) (body []byte, free func(), refused outcome) {
	free = func() {}
	limited := http.MaxBytesReader(w, req.Body, MaxBody)
	// discard reads the rest. A sender that is answered before it has sent everything may see a cut connection.
	discard := func() { _, _ = io.Copy(io.Discard, limited) }
	if req.ContentLength > MaxBody {
		discard()
		return nil, free, outcome{result: resultTooLarge, err: errors.New("its Content-Length is too large")}
	}
	start := bytes.NewBuffer(make([]byte, 0, min(max(req.ContentLength, 0), smallBody)+bytes.MinRead))
	_, err := start.ReadFrom(io.LimitReader(limited, smallBody))
	body = start.Bytes()
	if err == nil && len(body) == smallBody {
		markLarge(req.Context(), largeSlots)
		if !acquire(ctx, r.large) {
			discard()
			return nil, free, outcome{result: resultLimited, err: errors.New("too many large messages at a time")}
		}
		free = func() { r.large.Release(1) }
		var rest []byte
		rest, err = io.ReadAll(limited)
		body = append(body, rest...)
	}
	if err == nil {
		return body, free, outcome{}
	}
	refused = outcome{result: resultIncomplete, err: fmt.Errorf("read the body: %w", err)}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		refused.result = resultTooLarge
	}
	return nil, free, refused
}

// acquire reports whether it got a slot within slotWait.
func acquire(ctx context.Context, s *semaphore.Weighted) bool {
	if s.TryAcquire(1) {
		return true
	}
	wait, done := context.WithTimeout(ctx, slotWait)
	defer done()
	return s.Acquire(wait, 1) == nil
}
