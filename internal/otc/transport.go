// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/shorten"
)

const (
	// attemptTimeout limits one request, its reply included, so that a silent service is noticed before a round ends.
	attemptTimeout = 10 * time.Second
	// replyLimit is the largest reply in bytes. A page of 100 instances has about 300 KB.
	replyLimit = 8 << 20
	// attempts is how often a call that may be retried is sent at most.
	attempts = 4
)

// transport works around the faults of the SDK. It returns every unsuccessful reply as an *Error. So the SDK never
// sees a status for which it would sleep, retry or log in by itself.
type transport struct {
	base     http.RoundTripper
	session  *session
	limits   map[service]*rate.Limiter
	spare    *rate.Limiter // of a sparing Cloud; nil for decisions
	ops      map[operation]traits
	rate     rate.Limit // requests per second to each service
	requests *prometheus.CounterVec
	log      *zap.Logger
}

func newTransport(base http.RoundTripper, o Options) *transport {
	t := &transport{
		base: base, limits: map[service]*rate.Limiter{}, rate: rate.Limit(o.Rate), ops: operations(),
		requests: newRequestCounter(o.Registerer), log: o.Log,
	}
	burst := int(math.Ceil(o.Rate))
	for _, is := range t.ops {
		if t.limits[is.service] == nil {
			t.limits[is.service] = rate.NewLimiter(rate.Limit(o.Rate), burst)
		}
	}
	return t
}

type call struct {
	t   *transport
	ctx context.Context // here because the SDK takes no context
	op  operation
	key string // the access key that signs the requests; empty if they carry a token
	err error  // of the login, without which the call cannot be sent
	// confirm is called before each time that the call is sent; nil if it changes no database.
	confirm func(context.Context) error
}

// RoundTrip sends a request and retries it if necessary. It logs in again at most once.
func (c call) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.err != nil {
		return nil, c.unsent(c.err)
	}
	renewed := false
	for attempt := 1; ; attempt++ {
		if err := c.wait(); err != nil { // a call that is sent again was refused
			return nil, c.unsent(err)
		}
		token := c.token()
		resp, fault := c.send(req, token)
		if fault == nil {
			return resp, nil
		}
		if fault.Status == http.StatusUnauthorized && c.op != opLogin && !renewed {
			renewed = true // once per call, because a service may never accept the token
			if _, err := c.t.session.get(c.ctx, cmp.Or(token, c.key)); err != nil {
				return nil, c.unsent(err)
			}
			if c.key != "" { // the request is signed with the old key; the next call uses the new one
				return nil, fault
			}
			attempt--
			continue
		}
		pause, retry := c.retryAfterFault(req.Method, attempt, fault)
		if !retry {
			return nil, fault
		}
		c.t.log.Debug("cloud request failed, retrying", zap.String("service", fault.Service),
			zap.String("operation", fault.Operation), zap.Int("status", fault.Status), zap.Duration("after", pause))
		if err := sleep(c.ctx, pause); err != nil {
			return nil, c.unsent(err)
		}
	}
}

func (c call) wait() error {
	if c.t.spare != nil {
		if err := c.t.spare.Wait(c.ctx); err != nil {
			return fmt.Errorf("request rate for information: %w", context.DeadlineExceeded)
		}
	}
	err := c.t.limits[c.t.ops[c.op].service].Wait(c.ctx)
	if err != nil && c.ctx.Err() == nil { // the limiter saw that the deadline would be exceeded
		return fmt.Errorf("request rate: %w", context.DeadlineExceeded)
	}
	if err == nil && c.confirm != nil {
		err = c.confirm(c.ctx)
	}
	return err
}

// unsent returns the error of a call that was not sent, or that was refused each time without being carried out.
func (c call) unsent(err error) error {
	if c.confirm == nil {
		return c.t.wrapError(c.op, err)
	}
	return c.t.fault(c.op, 0, fmt.Errorf("%w: %w", autopilot.ErrNotRequested, err))
}

func (c call) token() string {
	if c.op == opLogin || c.key != "" {
		return ""
	}
	return c.t.session.current().token
}

// send sends a request once. It reads the whole reply, so that the connection returns to the pool even if the SDK
// does not close the body, as after a DELETE.
func (c call) send(req *http.Request, token string) (*http.Response, *Error) {
	ctx, cancel := context.WithTimeout(c.ctx, attemptTimeout)
	defer cancel()
	out := req.Clone(ctx)
	out.Close = false // the SDK requests a new connection for each request
	if token != "" {
		out.Header.Set("X-Auth-Token", token)
	}
	if req.GetBody != nil { // net/http sets it for the bodies of the SDK, which are in memory
		out.Body, _ = req.GetBody()
	}
	resp, err := c.t.base.RoundTrip(out)
	var reply []byte
	if err == nil {
		reply, err = io.ReadAll(io.LimitReader(resp.Body, replyLimit+1))
		_ = resp.Body.Close()
	}
	code := "error"
	if err == nil {
		code = strconv.Itoa(resp.StatusCode)
	} else if c.ctx.Err() == nil && ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s", attemptTimeout)
	}
	c.t.requests.WithLabelValues(string(c.t.ops[c.op].service), string(c.op), code).Inc()
	switch {
	case err != nil:
		return nil, c.t.fault(c.op, 0, err)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, c.t.refusal(c.op, resp, reply)
	case len(reply) > replyLimit:
		return nil, c.t.fault(c.op, 0, errors.New("the reply is too large"))
	}
	if fault := c.complete(resp, reply); fault != nil {
		return nil, fault
	}
	resp.Request = req
	resp.Body = io.NopCloser(bytes.NewReader(reply))
	return resp, nil
}

// complete returns an error if a reply with a successful status is no success: it lacks the key that the operation
// needs, or, if none is needed, has an error code. SMN reports some errors with 200 (SMN api: error_codes.rst).
func (c call) complete(resp *http.Response, reply []byte) *Error {
	var lacking error
	if key := c.t.ops[c.op].holds; key != "" {
		var document map[string]json.RawMessage
		if err := json.Unmarshal(reply, &document); err != nil {
			lacking = fmt.Errorf("the reply is not a JSON object: %w", err)
		} else if _, ok := document[key]; ok {
			return nil
		} else {
			lacking = errors.New("the reply contains no " + key)
		}
	}
	refusal := c.t.refusal(c.op, resp, reply)
	if _, _, dotted := strings.Cut(refusal.Code, "."); dotted || lacking != nil && refusal.Code != "" {
		return refusal
	}
	if lacking != nil {
		return c.t.fault(c.op, 0, lacking)
	}
	return nil
}

// wrapError returns the *Error inside an error of the SDK, or a new one. It returns nil for nil.
func (t *transport) wrapError(op operation, err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	if odd, ok := errors.AsType[golangsdk.ErrUnexpectedResponseCode](err); ok {
		return t.fault(op, odd.Actual, errors.New("unexpected status"))
	}
	return t.fault(op, 0, err)
}

func (t *transport) fault(op operation, status int, cause error) *Error {
	return &Error{Service: string(t.ops[op].service), Operation: string(op), Status: status,
		Message: t.clean(cause.Error()), cause: cause}
}

// clean returns a text of the cloud or the SDK without secrets, as shorten.Foreign shortens it.
func (t *transport) clean(s string) string {
	for _, secret := range t.session.secrets() {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "***")
		}
	}
	return shorten.Foreign(s)
}
