// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"context"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// only returns roots that trust one server.
func only(server *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return pool
}

// tunnel is a proxy that connects every name to one server, and records its requests.
type tunnel struct {
	to string

	mu       sync.Mutex
	requests []string
}

func (p *tunnel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.requests = append(p.requests, r.Method+" "+r.Host)
	p.mu.Unlock()
	if p.to == "" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	server, err := (&net.Dialer{}).DialContext(context.WithoutCancel(r.Context()), "tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer server.Close()
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(server, client) }()
	_, _ = io.Copy(client, server)
}

// In a network whose only way out is a proxy, certificates and confirmations must use it as the cloud's API does. The
// proxy has a private address and resolves the names.
func TestClientTakesTheProxy(t *testing.T) {
	host := httptest.NewTLSServer(http.NotFoundHandler())
	defer host.Close()
	host.Config.ErrorLog = log.New(io.Discard, "", 0)
	p := &tunnel{to: host.Listener.Addr().String()}
	server := httptest.NewServer(p)
	defer server.Close()
	via := func(*http.Request) (*url.URL, error) { return url.Parse(server.URL) }
	get := func() error {
		client := NewClient(Fixed("example.com"), ClientOptions{Roots: only(host), Proxy: via})
		resp, err := client.Get("https://example.com/smn")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	if err := get(); err != nil { // httptest's certificate is of example.com
		t.Error(err)
	}
	p.to = ""
	if err := get(); err == nil || !strings.Contains(err.Error(), "through the proxy "+strings.TrimPrefix(server.URL, "http://")) {
		t.Errorf("a proxy that refuses: %v", err)
	}
	if len(p.requests) != 2 || p.requests[0] != "CONNECT example.com:443" {
		t.Errorf("the proxy has the requests %v", p.requests)
	}
}
