// SPDX-License-Identifier: Apache-2.0

// Package simcloud is a simulated Open Telekom Cloud for tests and for the sandbox: IAM (password and AK/SK), SMN
// (signs and delivers), Cloud Eye v1 (keeps raw data and evaluates rules) and RDS v3, over real HTTP on loopback
// addresses.
//
// It keeps the documented rules of the cloud. Where the documents leave a choice, [Settings] have a switch. The package
// knows nothing of the service under test, and imports only the standard library.
//
// Time. All timestamps come from [Options.Now]. [Options.Speed] shortens durations only: at 60 a minute of the cloud
// (raw interval of a metric, period of a rule, suppress_duration, a job, a retry) passes in one second of Now, while
// every timestamp stays a time of Now. Durations in this package are the cloud's unless they say otherwise.
//
// Rules are evaluated and messages are sent only by [Cloud.Run], as time passes, or by [Cloud.Step], which does once
// what is due and is for tests with a clock of their own. API calls are answered at any time. The listeners are real,
// so a bubble of testing/synctest with a Cloud in it never becomes idle. Use [Options.Local] there, which has no
// listeners.
package simcloud

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
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
	servers            []*httptest.Server
	transport          http.RoundTripper

	wake      chan struct{}
	closed    chan struct{}
	closeOnce sync.Once

	mu       sync.Mutex
	settings Settings
	requests []Request
	tokens   map[string]time.Time // time of expiry by token
	sampled  int64                // last tick whose raw data exist and whose rules are evaluated

	signingKey   *rsa.PrivateKey
	signingCert  string            // path on the certificate host
	certificates map[string][]byte // DER, by path

	topics        []*topic // oldest first
	subscriptions []*subscription
	confirmLinks  map[string]confirmLink // by token
	queue         []*message
	messages      []*message

	rules    []*rule // oldest first
	ruleSeq  int64
	ruleSeqs map[string]int64 // also of deleted rules, because a page may start at one

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
		transport: cmp.Or(opts.Transport, deliveryTransport()),
	}
	c.raw = c.span(time.Minute)
	c.sampled = c.tickAt(opts.Now())
	if err := json.Unmarshal(flavorData, &c.flavors); err != nil {
		return nil, fmt.Errorf("load flavors: %w", err)
	}
	if opts.SigningKey != nil {
		if err := c.useSigningKey(opts.SigningKey); err != nil {
			return nil, err
		}
	}
	c.api = virtualHost{c.mux(c.apiOperations()), "api." + opts.Region + ".otc.invalid"}
	c.cert = virtualHost{c.mux(c.certOperations()), "smn." + opts.Region + ".otc.t-systems.com"}
	c.console = virtualHost{c.mux(c.consoleOperations()), "console.otc.t-systems.com"}
	if !opts.Local {
		c.listen()
	}
	return c, nil
}

// virtualHost is a handler and its host, with a port if it listens.
type virtualHost struct {
	http.Handler
	host string
}

// listen serves the hosts on loopback addresses, which become their names.
func (c *Cloud) listen() {
	serve := func(h *virtualHost, start func(*httptest.Server)) {
		server := httptest.NewUnstartedServer(h.Handler)
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		start(server)
		h.host = server.Listener.Addr().String()
		c.servers = append(c.servers, server)
	}
	serve(&c.api, (*httptest.Server).Start)
	serve(&c.cert, (*httptest.Server).StartTLS)
	serve(&c.console, (*httptest.Server).StartTLS)
	// All servers of httptest have the same self-signed certificate.
	c.caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.servers[1].Certificate().Raw})
}

// Close ends the listeners, open connections and Run.
func (c *Cloud) Close() error {
	c.closeOnce.Do(func() {
		close(c.closed)
		for _, s := range c.servers {
			s.CloseClientConnections() // a request that hangs would keep Close waiting
			s.Close()
		}
		if t, ok := c.transport.(*http.Transport); ok {
			t.CloseIdleConnections()
		}
	})
	return nil
}

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

// find returns the first row that matches, or nil.
func find[T any](rows []*T, matches func(*T) bool) *T {
	if i := slices.IndexFunc(rows, matches); i >= 0 {
		return rows[i]
	}
	return nil
}

// remove removes the rows that match. It reports whether there were any.
func remove[T any](rows *[]*T, matches func(*T) bool) bool {
	before := len(*rows)
	*rows = slices.DeleteFunc(*rows, matches)
	return len(*rows) < before
}

// copies locks the cloud and returns a copy of each row.
func copies[T, V any](c *Cloud, rows *[]*T, snapshot func(*T) V) []V {
	c.lock()
	defer c.mu.Unlock()
	out := []V{}
	for _, row := range *rows {
		out = append(out, snapshot(row))
	}
	return out
}

// dashed returns an id of 32 hex digits in the form of a UUID.
func dashed(id string) string {
	return strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
}

// hexID returns a random id of n hex digits. crypto/rand never fails.
func hexID(n int) string {
	b := make([]byte, (n+1)/2)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)[:n]
}
