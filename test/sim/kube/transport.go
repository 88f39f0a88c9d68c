// SPDX-License-Identifier: Apache-2.0

package simkube

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
)

// RoundTrip answers a request in memory. The caller can read the body of a watch while it is written.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		return s.answer(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(ctx)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	read, write := io.Pipe()
	w := &streamReply{header: http.Header{}, body: write, begun: make(chan struct{})}
	go func() {
		defer cancel()
		s.ServeHTTP(w, in)
		w.WriteHeader(http.StatusOK)
		_ = write.Close()
		_ = in.Body.Close()
	}()
	select {
	case <-w.begun:
	case <-r.Context().Done():
		_ = read.CloseWithError(r.Context().Err())
		return nil, r.Context().Err()
	}
	stop := context.AfterFunc(r.Context(), func() { _ = read.CloseWithError(r.Context().Err()) })
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: &replyBody{PipeReader: read, leave: func() { stop(); cancel() }}, ContentLength: -1, Request: r,
	}, nil
}

// answer answers a request in the goroutine of the caller.
func (s *Server) answer(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in := r.WithContext(r.Context()) // a RoundTripper must not modify the request
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, in)
	_ = in.Body.Close()
	response := w.Result()
	response.Request = r
	return response, nil
}

// streamReply writes a reply into a pipe.
type streamReply struct {
	header http.Header
	body   *io.PipeWriter
	begun  chan struct{}
	once   sync.Once
	status int
}

func (w *streamReply) Header() http.Header { return w.header }
func (w *streamReply) Flush()              {}

func (w *streamReply) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.header = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *streamReply) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// replyBody cancels the request when the caller closes the body.
type replyBody struct {
	*io.PipeReader
	leave func()
}

func (b *replyBody) Close() error {
	b.leave()
	return b.PipeReader.Close()
}
