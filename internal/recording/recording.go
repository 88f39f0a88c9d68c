// SPDX-License-Identifier: Apache-2.0

// Package recording writes the exchanges with the cloud's API to a file that may be published. It keeps methods, paths,
// statuses, types, units and states. Everything that could identify a tenant becomes a stable placeholder before it is
// written: the package keeps a value only if it is in a list of public words.
package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// bodyLimit is the largest body in bytes that is recorded. A page of 100 instances has about 300 KB.
const bodyLimit = 8 << 20

// Exchange is one request with its reply, and one line of a recording.
type Exchange struct {
	At      time.Time         `json:"at"` // of the reply, by the clock of the client
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Query   url.Values        `json:"query,omitempty"`
	Request json.RawMessage   `json:"request,omitempty"`
	Status  int               `json:"status"` // 0 means no answer
	Header  map[string]string `json:"header,omitempty"`
	Reply   json.RawMessage   `json:"reply,omitempty"` // absent if the body is not JSON
}

// Recorder is a RoundTripper that writes each exchange as a line of JSON. It is safe for concurrent use.
type Recorder struct {
	base http.RoundTripper
	out  io.Writer
	now  func() time.Time

	mu     sync.Mutex
	redact *redactor
	err    error // the first of writing
}

// New returns a Recorder that writes to out. Wrap must be called before its first request.
func New(out io.Writer, now func() time.Time) *Recorder {
	return &Recorder{now: now, out: out, redact: &redactor{newVocabulary(), map[string]string{"": ""}}}
}

// Wrap returns the Recorder, which then sends requests with base. It never writes the given secrets.
func (r *Recorder) Wrap(base http.RoundTripper, secrets ...string) http.RoundTripper {
	r.base = base
	for _, secret := range secrets {
		r.redact.placeholder(secret)
	}
	return r
}

// RoundTrip sends a request and records the exchange, also if there is no answer.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.GetBody != nil {
		if body, err := req.GetBody(); err == nil {
			sent, _ = io.ReadAll(body) // of memory
		}
	}
	resp, err := r.base.RoundTrip(req)
	if err != nil {
		r.write(req, sent, &http.Response{}, nil)
		return nil, err
	}
	// A body that breaks off is recorded as far as it came. The caller sees the error when it reads on.
	reply, _ := io.ReadAll(io.LimitReader(resp.Body, bodyLimit))
	r.write(req, sent, resp, reply)
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(reply), resp.Body), resp.Body}
	return resp, nil
}

// Err returns the first error of writing, or nil.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *Recorder) write(req *http.Request, sent []byte, resp *http.Response, reply []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := Exchange{At: r.now().UTC(), Method: req.Method, Status: resp.StatusCode, Header: map[string]string{}}
	// The first pass learns the values, so that the second one also finds those that a text mentions before them.
	for range 2 {
		x.Path, x.Query = r.redact.segments(req.URL.Path), url.Values{}
		for key, values := range req.URL.Query() {
			for _, value := range values {
				x.Query.Add(r.redact.key(key, false), r.redact.value(key, value))
			}
		}
		x.Request, x.Reply = r.redact.body(sent), r.redact.body(reply)
	}
	for _, key := range []string{"Content-Type", "Retry-After", "X-Subject-Token"} {
		if value := resp.Header.Get(key); value != "" {
			x.Header[key] = r.redact.value(key, value)
		}
	}
	line, err := json.Marshal(x)
	if err == nil {
		_, err = r.out.Write(append(line, '\n'))
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("write the recording: %w", err)
	}
}
