// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

const (
	// certificateInterval is the time between two checks of our own certificate. Renewal takes weeks, so an hour is
	// enough.
	certificateInterval = time.Hour
	// certificateRetry is the time to the next check after one that failed.
	certificateRetry = 5 * time.Minute
	// certificateKept is how long the last certificate counts while it cannot be read again. It may be renewed meanwhile.
	certificateKept = 24 * time.Hour
	// certificateLimit bounds a check.
	certificateLimit = 10 * time.Second
	// certificateLastDays is when the warnings begin. A certificate of 90 days is usually renewed 30 days before its end.
	certificateLastDays = 14 * 24 * time.Hour
	// certificateLastPart is the part of the lifetime with warnings, for certificates that live for some days only.
	certificateLastPart = 4
)

// certificateCheck reads the certificate of the public URL now and then. If it expires, SMN may stop delivering, and
// nothing else would show that: the sweep still finds the alarms, but later.
type certificateCheck struct {
	host, address string
	roots         *x509.CertPool // nil means the system's
	dial          func(context.Context) ([]*x509.Certificate, error)
	expiry        *prometheus.GaugeVec
	log           *zap.Logger
	now           func() time.Time

	mu   sync.Mutex
	last certificateSeen
	read time.Time // when last was read
}

// certificateSeen is the result of reading the certificate of the public URL.
type certificateSeen struct {
	Expires  time.Time // zero before it could be read
	LastDays bool      // it expires soon
	Invalid  string    // why it is not valid for the public URL; empty if it is
	Unread   string    // the error of the last attempt to read it; empty after a success
}

// newCertificateCheck returns nil for a URL without a certificate.
func newCertificateCheck(o Options, reg prometheus.Registerer) *certificateCheck {
	if o.PublicURL.Scheme != "https" {
		return nil
	}
	c := &certificateCheck{
		host: o.PublicURL.Hostname(), address: tlsAddress(o.PublicURL), expiry: certificateGauge(reg),
		log: o.Log.Named("certificate"), now: o.Now,
	}
	c.dial = c.present
	return c
}

// certificateGauge has no value before the first certificate was read.
func certificateGauge(reg prometheus.Registerer) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "rds_autopilot_public_url_certificate_expiry_timestamp_seconds",
		Help: "When the certificate of --public-url expires, as this replica last read it. Missing for http, and before it could be read.",
	}, nil)
	reg.MustRegister(g)
	return g
}

func tlsAddress(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// run checks the certificate until ctx ends.
func (c *certificateCheck) run(ctx context.Context) {
	for {
		wait := certificateInterval
		if !c.check(ctx) {
			wait = certificateRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// check reads the certificate once, and reports whether it could. The pod may be unable to reach its own public URL
// although SMN can, so a failure is no fault by itself.
func (c *certificateCheck) check(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, certificateLimit)
	defer cancel()
	chain, err := c.dial(limited)
	if ctx.Err() != nil {
		return false // the service stops
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if err != nil {
		if c.last.Unread == "" { // once, until it can be read again
			c.log.Warn("cannot read the certificate of --public-url from here; its expiry is not known", zap.Error(err))
		}
		if now.Sub(c.read) > certificateKept {
			c.expiry.Reset()
			c.last = certificateSeen{}
		}
		c.last.Unread = err.Error()
		return false
	}
	leaf := chain[0]
	c.read, c.last = now, certificateSeen{Expires: leaf.NotAfter, LastDays: now.After(lastDays(leaf))}
	c.expiry.WithLabelValues().Set(float64(leaf.NotAfter.Unix()))
	others := x509.NewCertPool()
	for _, other := range chain[1:] {
		others.AddCert(other)
	}
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: c.host, Roots: c.roots, Intermediates: others, CurrentTime: now})
	switch {
	case err != nil:
		c.last.Invalid = err.Error()
		c.log.Warn("the certificate of --public-url is not valid; SMN may refuse to deliver", zap.Error(err),
			zap.Time("expires", leaf.NotAfter))
	case c.last.LastDays:
		c.log.Warn("the certificate of --public-url expires soon; renew it at the Ingress",
			zap.Time("expires", leaf.NotAfter))
	}
	return true
}

// lastDays returns when the warnings begin.
func lastDays(leaf *x509.Certificate) time.Time {
	return leaf.NotAfter.Add(-min(certificateLastDays, leaf.NotAfter.Sub(leaf.NotBefore)/certificateLastPart))
}

// present returns the certificates that the public URL presents, the server's own first. It sends no request.
func (c *certificateCheck) present(ctx context.Context) ([]*x509.Certificate, error) {
	//nolint:gosec // an invalid certificate must be read as well; check verifies it, and nothing is sent
	d := tls.Dialer{Config: &tls.Config{ServerName: c.host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}
	conn, err := d.DialContext(ctx, "tcp", c.address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if t, ok := conn.(*tls.Conn); ok && len(t.ConnectionState().PeerCertificates) > 0 {
		return t.ConnectionState().PeerCertificates, nil
	}
	return nil, errors.New("the server presents no certificate")
}

// seen returns the last result.
func (c *certificateCheck) seen() certificateSeen {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}
