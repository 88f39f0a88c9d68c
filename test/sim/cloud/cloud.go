// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Cloud is a running simulated cloud with one user, one domain and one project. Its methods may be called concurrently.
type Cloud struct {
	opts     Options
	raw      time.Duration // a minute of the cloud
	identity identity
	caPEM    []byte

	api, cert, console virtualHost
	servers            []*http.Server
	serving            sync.WaitGroup
	transport          http.RoundTripper

	wake      chan struct{}
	closed    chan struct{}
	closeOnce sync.Once

	mu       sync.Mutex
	settings Settings
	requests []*Request
	tokens   map[string]time.Time // to the time of expiry
	sampled  int64                // last tick with raw data and rules evaluated

	signingKey   *rsa.PrivateKey
	signingCert  string // path on the certificate host
	certificates map[string][]byte

	topics        []*topic // oldest first
	subscriptions []*subscription
	confirmLinks  map[string]confirmLink // by token
	confirmations []time.Time            // sent within the last 10 minutes
	queue         []*message
	messages      []*message

	rules    []*rule // oldest first
	ruleSeq  int64
	ruleSeqs map[string]int64 // of deleted rules as well: a page may start at one

	instances  []*instance
	jobs       []*job
	flavors    []flavor
	zoneStatus map[string]map[string]string // spec code to zone to az_status, where not normal
}

// Start starts a cloud on loopback addresses. Close ends it.
func Start(opts Options) (*Cloud, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	c := &Cloud{
		opts: opts, settings: opts.Settings, identity: newIdentity(opts.Region),
		wake: make(chan struct{}, 1), closed: make(chan struct{}),
		tokens: map[string]time.Time{}, certificates: map[string][]byte{}, confirmLinks: map[string]confirmLink{},
		ruleSeqs: map[string]int64{}, zoneStatus: map[string]map[string]string{},
		transport: opts.Transport,
	}
	c.raw = c.span(time.Minute)
	c.sampled = c.tickAt(opts.Now())
	if c.transport == nil {
		c.transport = deliveryTransport()
	}
	var err error
	if c.flavors, err = loadFlavors(); err != nil {
		return nil, fmt.Errorf("load flavors: %w", err)
	}
	if opts.SigningKey != nil {
		from, to := validity()
		if err := c.useSigningKey(opts.SigningKey, from, to); err != nil {
			return nil, err
		}
	}
	c.api, c.cert, c.console = virtualHost{c.mux(c.apiOperations()), "api." + opts.Region + ".otc.invalid"},
		virtualHost{c.mux(c.certOperations()), "smn." + opts.Region + ".otc.t-systems.com"}, virtualHost{c.mux(c.consoleOperations()), "console.otc.t-systems.com"}
	if opts.Local {
		return c, nil
	}
	if err := c.listen(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// virtualHost is a handler and the host, with the port if any, at which it is found.
type virtualHost struct {
	http.Handler
	host string
}

// listen serves the hosts on loopback, and names them by their address there.
func (c *Cloud) listen() error {
	caPEM, config, err := newTLS()
	if err != nil {
		return err
	}
	c.caPEM = caPEM
	for _, l := range []struct {
		*virtualHost
		tls bool
	}{{&c.api, false}, {&c.cert, true}, {&c.console, true}} {
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		l.host = listener.Addr().String()
		server := &http.Server{Handler: l.Handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
		serve := server.Serve
		if l.tls {
			server.TLSConfig = config.Clone()
			serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
		}
		c.servers = append(c.servers, server)
		c.serving.Go(func() { _ = serve(listener) }) // ends with http.ErrServerClosed
	}
	return nil
}

// Close ends the listeners, open connections and Run.
func (c *Cloud) Close() error {
	var errs []error
	c.closeOnce.Do(func() {
		close(c.closed)
		for _, s := range c.servers {
			errs = append(errs, s.Close())
		}
		c.serving.Wait()
		if t, ok := c.transport.(*http.Transport); ok {
			t.CloseIdleConnections()
		}
	})
	return errors.Join(errs...)
}

// AuthURL is the identity endpoint, as OS_AUTH_URL wants it.
func (c *Cloud) AuthURL() string { return c.baseURL() + "/iam/v3" }

// Endpoint is the base URL of a service (iam, smn, ces, rds) without version and project.
func (c *Cloud) Endpoint(service string) string { return c.baseURL() + "/" + service }

func (c *Cloud) baseURL() string { return "http://" + c.api.host }

// CertHost is the host:port of signing certificates.
func (c *Cloud) CertHost() string { return c.cert.host }

// ConfirmHost is the host:port of confirmation links.
func (c *Cloud) ConfirmHost() string { return c.console.host }

// CAPEM is the certificate authority of CertHost and ConfirmHost.
func (c *Cloud) CAPEM() []byte { return append([]byte(nil), c.caPEM...) }

// Region is the cloud's only region.
func (c *Cloud) Region() string { return c.opts.Region }

// ProjectID is the id of the cloud's only project, 32 hex digits.
func (c *Cloud) ProjectID() string { return c.identity.projectID }

// newUUID is an id in the form of a UUID.
func newUUID() string {
	return hexID(8) + "-" + hexID(4) + "-" + hexID(4) + "-" + hexID(4) + "-" + hexID(12)
}

// hexID is an id of n hex digits. crypto/rand never fails.
func hexID(n int) string {
	b := make([]byte, (n+1)/2)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)[:n]
}
