// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// RoundTrip answers a request to one of the cloud's hosts in memory, in the caller's goroutine and without TLS: for tests that
// cannot use the network. Fault.Cut is a status 500 here.
func (c *Cloud) RoundTrip(r *http.Request) (*http.Response, error) {
	body := r.Body
	if body == nil {
		body = http.NoBody
	}
	defer func() { _ = body.Close() }()
	for _, d := range []virtualHost{c.api, c.cert, c.console} {
		if d.host != r.URL.Host {
			continue
		}
		in := r.Clone(r.Context())
		in.Body, in.Host, in.RequestURI = body, r.URL.Host, r.URL.RequestURI()
		w := &localReply{header: http.Header{}, status: http.StatusOK}
		d.ServeHTTP(w, in)
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return &http.Response{
			StatusCode: w.status, Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
		}, nil
	}
	return nil, fmt.Errorf("the simulated cloud has no host %s", r.URL.Host)
}

// localReply keeps a reply.
type localReply struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *localReply) Header() http.Header         { return w.header }
func (w *localReply) WriteHeader(status int)      { w.status = status }
func (w *localReply) Write(b []byte) (int, error) { return w.body.Write(b) }
