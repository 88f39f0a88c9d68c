// SPDX-License-Identifier: Apache-2.0

// Package webhook receives the messages of SMN. It verifies a message, finds its database, stores the signal on that
// object, and then acknowledges. It is reachable from the internet: checks.go has the table of all checks, the
// cheapest and strictest first.
//
// It does not use decisions or the cloud's APIs, so it stores and acknowledges even while the cloud is down.
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

// Limits of the receiver, each with the status beyond it. SMN gives up after 5 s and repeats only messages that were
// answered 5xx (docs/cloud-facts.md, Delivery). So every answer is sent within 4 s, and none is 429. There is no limit
// per source address: SMN's addresses are not fixed, and behind an ingress all senders have one address. The limits of
// certificates are in autopilot/smn/signature.go, those of the fields of a message in object.go there.

// MaxBody is the largest body in bytes; beyond it the answer is 413. A message has at most 256 KB, and escaping
// doubles it.
const MaxBody = 1 << 20

// MaxAhead is how far a message may be ahead of our clock; beyond it the answer is 403. An alarm inside that is further
// ahead is unreadable.
const MaxAhead = 5 * time.Minute

// Connections limits the open connections, some 35 KB each. Others wait for at most writeTime until one ends.
const Connections = 1024

// Limits of a connection.
const (
	// maxHeader is in bytes; beyond it net/http answers 431. SMN's headers have less than 1 KB.
	maxHeader = 32 << 10
	// readTime is for headers and body. A body that takes longer is answered 503, because its sender may be honest.
	readTime = 3 * time.Second
	// writeTime counts from the end of the headers. An answer fits into one packet, so only a client that does not read
	// is cut off.
	writeTime = 6 * time.Second
)

// Limits of the work on messages. Beyond each the answer is 503.
const (
	// answerTime is for the whole answer, including the API server's part.
	answerTime = 3500 * time.Millisecond
	// smallBody is in bytes. Alarms have 2 to 4 KB. A larger body needs one of largeSlots.
	smallBody = 8 << 10
	// largeSlots limits the large bodies, because each costs five times its size in memory. Connections alone allow 5 GB.
	largeSlots = 16
	// retryAfter is in seconds. The header has a random value up to twice that, so that senders do not all return at once.
	retryAfter = 5
	// confirmTime is for one call of a confirmation link.
	confirmTime = 2 * time.Second
	// lateStart is how long after its arrival the work on a message may begin. A message that begins later had a slow
	// sender. If its work does not end in time, the result is incomplete.
	lateStart = 2 * time.Second
)

// linesPerSecond limits the log lines of one result about messages that were not stored. A stranger can post thousands
// of messages per second, and would displace the lines that matter. The metric counts every message.
const linesPerSecond = 5

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

// handle reads a message and works on it. Each part returns when the context ends, so the answer is in time.
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
