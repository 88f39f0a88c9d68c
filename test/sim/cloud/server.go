// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"
)

// maxBody is IAM's limit for signed requests.
const maxBody = 12 << 20

// An operation is one call of an API.
type operation struct {
	service, name string
	pattern       string // of http.ServeMux
	open          bool   // needs no credentials
	// naming distinguishes operations of one path; name is used if it is nil.
	naming func(body []byte) string
	// run answers the call. The cloud is locked and advanced to now.
	run func(*call) reply
}

type call struct {
	*http.Request
	body []byte
	now  time.Time
}

func (q *call) decode(v any) error { return json.Unmarshal(q.body, v) }

// number returns a query parameter, or missing if it is absent. ok is false outside of least and most.
func (q *call) number(key string, missing, least, most int) (n int, ok bool) {
	text := q.URL.Query().Get(key)
	if text == "" {
		return missing, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= least && n <= most
}

type reply struct {
	status int
	header http.Header
	body   []byte
}

func jsonReply(status int, v any) reply {
	body, err := json.Marshal(v)
	if err != nil {
		return reply{status: http.StatusInternalServerError, body: []byte(err.Error())}
	}
	return reply{status: status, header: http.Header{"Content-Type": {"application/json"}}, body: body}
}

type fields map[string]any

// gatewayError is what the API gateway answers before a service sees the request.
func gatewayError(status int, code, format string, args ...any) reply {
	return jsonReply(status, fields{"error_code": code, "error_msg": fmt.Sprintf(format, args...), "request_id": hexID(32)})
}

func (c *Cloud) apiOperations() []operation {
	ops := c.iamOperations()
	ops = append(ops, c.smnOperations()...)
	ops = append(ops, c.cesOperations()...)
	return append(ops, c.rdsOperations()...)
}

func (c *Cloud) mux(ops []operation) http.Handler {
	m := http.NewServeMux()
	for _, op := range ops {
		m.Handle(op.pattern, c.handler(op))
	}
	m.Handle("/", c.handler(operation{service: "unknown", name: "unknown", open: true, run: func(*call) reply {
		return gatewayError(http.StatusNotFound, "APIGW.0101", "The API does not exist or has not been published in the environment")
	}}))
	return m
}

func (c *Cloud) handler(op operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		name := op.name
		if op.naming != nil {
			name = op.naming(body)
		}
		r = r.WithContext(context.WithValue(r.Context(), operationKey{}, [2]string{op.service, name}))
		r.Body = io.NopCloser(bytes.NewReader(body))
		c.logRequest(r, op.service, name)

		fault := &Fault{}
		if c.opts.Fault != nil {
			fault = cmp.Or(c.opts.Fault(r), fault)
		}
		if !pause(r, fault.Delay) {
			return
		}
		var rep reply
		if (fault.Status == 0 && !fault.Hang) || fault.Apply {
			rep = c.apply(op, &call{Request: r, body: body})
		}
		if fault.Hang {
			<-r.Context().Done()
			return
		}
		if fault.Status != 0 {
			rep = reply{status: fault.Status, body: []byte(fault.Body)}
		}
		rep.write(w, fault, c.opts.Now())
	}
}

// pause waits in real time and reports whether the client is still there.
func pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
		return false
	}
}

func (c *Cloud) apply(op operation, q *call) reply {
	q.now = c.lock()
	defer c.mu.Unlock()
	if !op.open {
		if rep, ok := c.authenticate(q); !ok {
			return rep
		}
		if p := q.PathValue("project"); p != "" && p != c.identity.projectID {
			return gatewayError(http.StatusForbidden, "APIGW.0302", "The project %s is not the one of the credentials", p)
		}
	}
	return op.run(q)
}

func (rep reply) write(w http.ResponseWriter, fault *Fault, now time.Time) {
	for _, h := range []http.Header{rep.header, fault.Header} {
		for k, v := range h {
			w.Header()[http.CanonicalHeaderKey(k)] = v
		}
	}
	w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
	w.WriteHeader(rep.status)
	if rep.status != http.StatusNoContent {
		_, _ = w.Write(rep.body) // fails if the client has left
	}
}

func (c *Cloud) logRequest(r *http.Request, service, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, Request{Time: c.opts.Now(), Service: service, Operation: name, Method: r.Method, URI: r.URL.RequestURI()})
}

// RoundTrip answers a request to one of the cloud's hosts in memory, in the caller's goroutine and without TLS, for
// tests that cannot use the network.
func (c *Cloud) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.Body, in.Host, in.RequestURI = cmp.Or(r.Body, io.ReadCloser(http.NoBody)), r.URL.Host, r.URL.RequestURI()
	defer func() { _ = in.Body.Close() }()
	for _, d := range []virtualHost{c.api, c.cert, c.console} {
		if d.host != r.URL.Host {
			continue
		}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, in)
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		res := w.Result()
		res.Request, res.ContentLength = r, int64(w.Body.Len())
		return res, nil
	}
	return nil, fmt.Errorf("the simulated cloud has no host %s", r.URL.Host)
}
