// SPDX-License-Identifier: Apache-2.0

package simkube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Endpoint serves a Server over HTTP on loopback, for other processes. It can be paused, killed and restarted.
type Endpoint struct {
	server  *Server
	address string

	mu      sync.Mutex
	http    *http.Server  // nil while nothing listens
	frozen  chan struct{} // closed by ResumeAPIServer; nil unless requests wait
	serving sync.WaitGroup
}

// Listen serves the API at a free port of 127.0.0.1 until Stop.
func (s *Server) Listen(ctx context.Context) (*Endpoint, error) {
	e := &Endpoint{server: s, address: "127.0.0.1:0"}
	return e, e.RestartAPIServer(ctx)
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

// KillAPIServer closes all connections and refuses new ones. The objects stay.
func (e *Endpoint) KillAPIServer() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.http == nil {
		return errors.New("kill the API server: it does not run")
	}
	err := e.http.Close()
	e.http = nil
	return err
}

// RestartAPIServer listens again at the same address.
func (e *Endpoint) RestartAPIServer(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.http != nil {
		return errors.New("restart the API server: it was not killed")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", e.address)
	if err != nil {
		return fmt.Errorf("listen for the Kubernetes API: %w", err)
	}
	e.address = listener.Addr().String()
	server := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	e.http = server
	e.serving.Go(func() { _ = server.Serve(listener) }) // ends with http.ErrServerClosed
	return nil
}

// Stop ends the endpoint.
func (e *Endpoint) Stop() error {
	_ = e.KillAPIServer() // fails only if it was killed before
	e.serving.Wait()
	return nil
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
