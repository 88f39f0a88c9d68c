// SPDX-License-Identifier: Apache-2.0

package simkube

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Endpoint serves a Server over HTTP on loopback, for other processes. It can be paused.
type Endpoint struct {
	server  *Server
	address string

	http    *http.Server
	serving sync.WaitGroup

	mu     sync.Mutex
	frozen chan struct{} // closed by ResumeAPIServer; nil unless requests wait
}

// Listen serves the API at a free port of 127.0.0.1 until Stop.
func (s *Server) Listen(ctx context.Context) (*Endpoint, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the Kubernetes API: %w", err)
	}
	e := &Endpoint{server: s, address: listener.Addr().String()}
	e.http = &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	e.serving.Go(func() { _ = e.http.Serve(listener) }) // ends with http.ErrServerClosed
	return e, nil
}

// Config returns the configuration of a client. This API checks no rights and understands JSON only.
func (e *Endpoint) Config() *rest.Config {
	config := e.server.Config()
	config.Host, config.Transport = "http://"+e.address, nil
	return config
}

// ServiceAccountConfig returns Config, because this API has no accounts.
func (e *Endpoint) ServiceAccountConfig(context.Context, string, string) (*rest.Config, error) {
	return e.Config(), nil
}

// PauseAPIServer makes every request wait until ResumeAPIServer. Connections stay open.
func (e *Endpoint) PauseAPIServer() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.frozen == nil {
		e.frozen = make(chan struct{})
	}
	return nil
}

// ResumeAPIServer ends a pause.
func (e *Endpoint) ResumeAPIServer() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.frozen != nil {
		close(e.frozen)
		e.frozen = nil
	}
	return nil
}

// Stop closes all connections.
func (e *Endpoint) Stop() error {
	err := e.http.Close()
	e.serving.Wait()
	return err
}

// ServeHTTP answers as the server does, after a pause has ended.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	frozen := e.frozen
	e.mu.Unlock()
	if frozen != nil {
		select {
		case <-frozen:
		case <-r.Context().Done():
			return
		}
	}
	e.server.ServeHTTP(w, r)
}
