// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Ingress is a reverse proxy between the cloud and the service. It takes its backends in turn. It answers 503 if it has none, and
// 502 if the next one cannot be reached.
type Ingress struct {
	URL string // without a path

	server  *http.Server
	serving sync.WaitGroup

	mu       sync.Mutex
	backends []string
	turn     int
}

type backendKey struct{}

func startIngress(ctx context.Context) (*Ingress, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("ingress: %w", err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second, ResponseHeaderTimeout: time.Minute}
	quiet := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Transport: transport, ErrorLog: quiet,
		Rewrite: func(r *httputil.ProxyRequest) {
			if backend, ok := r.In.Context().Value(backendKey{}).(*url.URL); ok {
				r.SetURL(backend)
				r.SetXForwarded()
			}
		},
	}
	i := &Ingress{URL: "http://" + listener.Addr().String()}
	i.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, ErrorLog: quiet, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		backend, err := i.next()
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), backendKey{}, backend)))
	})}
	i.server.RegisterOnShutdown(transport.CloseIdleConnections)
	i.serving.Go(func() { _ = i.server.Serve(listener) }) // ends with http.ErrServerClosed
	return i, nil
}

func (i *Ingress) add(backend string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.backends = append(i.backends, backend)
}

func (i *Ingress) remove(backend string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.backends = slices.DeleteFunc(i.backends, func(b string) bool { return b == backend })
}

func (i *Ingress) next() (*url.URL, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.backends) == 0 {
		return nil, errors.New("no backend")
	}
	i.turn++
	return url.Parse(i.backends[i.turn%len(i.backends)])
}

func (i *Ingress) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := i.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) { // a request hangs
		err = i.server.Close()
	}
	i.serving.Wait()
	return err
}
