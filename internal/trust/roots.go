// SPDX-License-Identifier: Apache-2.0

// Package trust keeps TLS trust roots current. It imports the standard library alone, so that every package may import
// it.
package trust

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
)

// Roots returns the present trust roots. With an error, they are the last usable ones. The caller must not modify them.
type Roots func() (*x509.CertPool, error)

// File returns Roots with the system's roots and those of a PEM file, which each call reads again. It returns an error
// if the file cannot be used now.
func File(name string) (Roots, error) {
	f := &pemFile{name: name}
	_, err := f.roots()
	return f.roots, err
}

type pemFile struct {
	name string

	mu   sync.Mutex
	read []byte // the last usable content
	pool *x509.CertPool
}

func (f *pemFile) roots() (*x509.CertPool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	read, err := os.ReadFile(f.name)
	if err != nil {
		return f.pool, fmt.Errorf("read trust roots: %w", err)
	}
	if f.pool != nil && bytes.Equal(read, f.read) {
		return f.pool, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(read) {
		return f.pool, errors.New("read trust roots: " + f.name + " contains no certificate")
	}
	f.read, f.pool = read, pool
	return pool, nil
}

// Transport is an http.RoundTripper that verifies servers with the present roots.
type Transport struct {
	roots Roots

	mu   sync.Mutex
	base *http.Transport // with the roots as of the last request
}

// NewTransport returns a Transport that sends as base does, which has a TLSClientConfig. Nil roots are the system's.
func NewTransport(base *http.Transport, roots Roots) *Transport {
	return &Transport{base: base, roots: roots}
}

// RoundTrip sends a request on a connection that the present roots allow.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.roots == nil {
		return t.base.RoundTrip(req)
	}
	pool, stale := t.roots()
	resp, err := t.with(pool).RoundTrip(req)
	if err != nil && stale != nil {
		return nil, fmt.Errorf("%w (%w)", err, stale)
	}
	return resp, err
}

// with replaces the connections if the roots have changed.
func (t *Transport) with(pool *x509.CertPool) *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.base; old.TLSClientConfig.RootCAs != pool {
		t.base = old.Clone()
		t.base.TLSClientConfig.RootCAs = pool
		old.CloseIdleConnections()
	}
	return t.base
}
