// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"

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
	log := r.sampled
	if o.result == resultStored { // once for each message, so a stranger who repeats messages cannot cause these lines
		log = r.Log
	}
	o.log(log)
}

// handle reads a message and works on it. Each part of the work returns when the context ends, so the answer is in
// time.
func (r *Receiver) handle(ctx context.Context, w http.ResponseWriter, req *http.Request) outcome {
	body, free, refused := r.readBody(w, req)
	defer free()
	if refused.result != "" {
		return refused
	}
	deadline, _ := ctx.Deadline()
	late := time.Until(deadline) < r.time-lateStart
	o := r.receive(ctx, body)
	if late && o.result == resultUnavailable {
		o.result = resultIncomplete
	}
	return o
}

// receive checks and stores a message. It answers a panic with 503, so the process continues and SMN repeats the message.
func (r *Receiver) receive(ctx context.Context, body []byte) (o outcome) {
	m := &message{body: body}
	defer func() {
		if p := recover(); p != nil {
			o.result, o.err = resultUnavailable, fmt.Errorf("panic: %T", p) // not its text, which may be the sender's
			r.sampled.Error("panic while receiving", zap.Error(o.err), zap.Stack("stack"))
		}
		o.typ, o.id, o.target = m.envelope.Type, m.envelope.MessageID, m.target
	}()
	if o = r.runChecks(ctx, m); o.result != "" {
		return o
	}
	switch m.envelope.Type {
	case smn.TypeConfirmation:
		o.result, o.err = r.confirm(ctx, m)
	case smn.TypeUnsubscribed:
		o.result, o.err = resultIgnored, errors.New("the subscription was cancelled, and the next sweep subscribes again")
	default:
		o.result, o.err = r.storeAlarm(ctx, m)
	}
	return o
}

// readBody reads the body within its limits. The caller calls free when it no longer needs the body. A result in the
// outcome ends the work.
func (r *Receiver) readBody(w http.ResponseWriter, req *http.Request) (body []byte, free func(), refused outcome) {
	free = func() {}
	limited := http.MaxBytesReader(w, req.Body, MaxBody)
	body, err := io.ReadAll(io.LimitReader(limited, smallBody))
	if err == nil && len(body) == smallBody {
		if !r.large.TryAcquire(1) {
			// A sender that is answered before it has sent everything may see a cut connection.
			_, _ = io.Copy(io.Discard, limited)
			return nil, free, outcome{result: resultIncomplete, err: errors.New("too many large messages at a time")}
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
