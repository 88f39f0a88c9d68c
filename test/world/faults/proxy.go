// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// Hooks of a Proxy. Either may be nil. Several goroutines call them, and a request waits for them.
type Hooks struct {
	// Fault returns the fault of a request before the API server sees it. The beginning of a watch can fail or hang, and Cut
	// ends its stream after Delay.
	Fault func(*http.Request) *simcloud.Fault
	// Answered is called with the answer of the API server before the client gets it. It is not called for watches. The status is
	// 0 if the API server did not answer, so that the request may or may not have been applied.
	Answered func(r *http.Request, body []byte, status int)
}

// Proxy forwards the requests of a client to the API server. It has the client's rights, and so has everyone who reaches it.
type Proxy struct {
	URL string

	hooks    Hooks
	upstream *url.URL
	client   http.RoundTripper
	watching *httputil.ReverseProxy
	server   *http.Server
	serving  sync.WaitGroup
}

// NewProxy starts a proxy on loopback, with this access to the API server.
func NewProxy(config *rest.Config, hooks Hooks) (*Proxy, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	upstream, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	quiet := log.New(io.Discard, "", 0)
	p := &Proxy{
		URL: "http://" + listener.Addr().String(), hooks: hooks, upstream: upstream, client: transport,
		watching: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) }, Transport: transport, FlushInterval: -1, ErrorLog: quiet,
		},
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second, ErrorLog: quiet}
	p.serving.Go(func() { _ = p.server.Serve(listener) }) // ends with http.ErrServerClosed
	return p, nil
}

// WriteKubeconfig writes a kubeconfig that leads through the proxy.
func (p *Proxy) WriteKubeconfig(path string) error {
	return apiserver.WriteKubeconfig(path, &rest.Config{Host: p.URL})
}

// Close closes every connection.
func (p *Proxy) Close() error {
	err := p.server.Close()
	p.serving.Wait()
	return err
}

// ServeHTTP forwards a request, or applies its fault.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body) // all of it, because otherwise the server does not notice that a client leaves
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var fault simcloud.Fault
	if p.hooks.Fault != nil {
		if f := p.hooks.Fault(r); f != nil {
			fault = *f
		}
	}
	if watches(r) {
		p.watch(w, r, fault)
		return
	}
	if !pause(r.Context(), fault.Delay) {
		return
	}
	var got answer
	if fault.Status == 0 && !fault.Hang || fault.Apply {
		got = p.forward(r, body)
		if p.hooks.Answered != nil {
			p.hooks.Answered(r, body, got.status)
		}
	}
	if fault.Hang {
		<-r.Context().Done()
		return
	}
	if fault.Status != 0 {
		got = answer{status: fault.Status, header: fault.Header, body: []byte(fault.Body)}
	}
	got.write(w, fault.Cut)
}

// watch forwards a watch. A watch applies nothing, so it can only fail at its beginning or at its end.
func (p *Proxy) watch(w http.ResponseWriter, r *http.Request, fault simcloud.Fault) {
	switch {
	case fault.Hang:
		<-r.Context().Done()
	case fault.Status != 0:
		answer{status: fault.Status, header: fault.Header, body: []byte(fault.Body)}.write(w, false)
	case fault.Cut:
		ctx, cancel := context.WithTimeout(r.Context(), fault.Delay)
		defer cancel()
		p.watching.ServeHTTP(w, r.WithContext(ctx))
	default:
		p.watching.ServeHTTP(w, r)
	}
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// forward sends a request to the API server. It is applied even if the client leaves meanwhile.
func (p *Proxy) forward(r *http.Request, body []byte) answer {
	out := r.Clone(context.WithoutCancel(r.Context()))
	out.RequestURI, out.Host = "", p.upstream.Host
	out.URL.Scheme, out.URL.Host = p.upstream.Scheme, p.upstream.Host
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.Header.Del("Accept-Encoding") // the transport sets it
	res, err := p.client.RoundTrip(out)
	if err != nil {
		return answer{}
	}
	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return answer{}
	}
	res.Header.Del("Content-Length")
	return answer{res.StatusCode, res.Header, text}
}

func (a answer) write(w http.ResponseWriter, cut bool) {
	if a.status == 0 { // as if the API server could not be reached
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), a.header)
	if !cut {
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body) // fails only if the client has left
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(a.body)+1))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body[:len(a.body)/2])
	_ = http.NewResponseController(w).Flush() // otherwise nothing would be sent
	panic(http.ErrAbortHandler)
}

// pause waits, and reports whether the client still waits too.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
