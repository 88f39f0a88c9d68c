// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// serverWithCertificate returns the URL of a TLS server, and its certificate for that host and those dates.
func serverWithCertificate(t *testing.T, host string, from, to time.Time) (*url.URL, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, NotBefore: from, NotAfter: to,
		IPAddresses: []net.IP{net.ParseIP(host)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(nil)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u, cert
}

// newCheckAt returns a check of that URL at a fixed time, and what it logs.
func newCheckAt(u *url.URL, now time.Time) (*certificateCheck, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.DebugLevel)
	o := Options{PublicURL: u, Log: zap.New(core), Now: func() time.Time { return now }}
	return newCertificateCheck(o, prometheus.NewRegistry()), logs
}

func TestCertificateOfThePublicURLIsReadAndReported(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		host      string
		from, to  time.Duration // from now
		untrusted bool
		invalid   string // a part of the reason
		warned    string // a part of the line
	}{
		"60 of 90 days left":   {host: "127.0.0.1", from: -30 * day, to: 60 * day},
		"15 of 90 days left":   {host: "127.0.0.1", from: -75 * day, to: 15 * day},
		"13 of 90 days left":   {host: "127.0.0.1", from: -77 * day, to: 13 * day, warned: "expires soon"},
		"2 of 6 days left":     {host: "127.0.0.1", from: -4 * day, to: 2 * day},
		"1 of 6 days left":     {host: "127.0.0.1", from: -5 * day, to: day, warned: "expires soon"},
		"expired":              {host: "127.0.0.1", from: -90 * day, to: -time.Hour, invalid: "expired", warned: "not valid"},
		"of another host":      {host: "127.0.0.2", from: -day, to: 60 * day, invalid: "127.0.0.1", warned: "not valid"},
		"of unknown authority": {host: "127.0.0.1", from: -day, to: 60 * day, untrusted: true, invalid: "unknown authority", warned: "not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, cert := serverWithCertificate(t, tc.host, now.Add(tc.from), now.Add(tc.to))
			c, logs := newCheckAt(u, now)
			c.roots = x509.NewCertPool()
			if !tc.untrusted {
				c.roots.AddCert(cert)
			}
			if !c.check(t.Context()) {
				t.Fatalf("not read: %+v", c.seen())
			}
			if got := testutil.ToFloat64(c.expiry.WithLabelValues()); got != float64(cert.NotAfter.Unix()) {
				t.Errorf("the metric is %v, want %v", got, cert.NotAfter.Unix())
			}
			if got := c.seen(); !got.Expires.Equal(cert.NotAfter) || (got.Invalid == "") != (tc.invalid == "") || !strings.Contains(got.Invalid, tc.invalid) {
				t.Errorf("seen %+v", got)
			}
			warned := ""
			for _, l := range logs.All() {
				warned += l.Message
			}
			if (warned == "") != (tc.warned == "") || !strings.Contains(warned, tc.warned) {
				t.Errorf("logged %q, want %q", warned, tc.warned)
			}
		})
	}
}

func TestPublicURLWithoutTLSHasNoCertificateMetric(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	o := Options{PublicURL: &url.URL{Scheme: "http", Host: "autopilot.example"}, Log: zap.NewNop()}
	if c := newCertificateCheck(o, reg); c != nil {
		t.Error("an http URL is checked")
	}
	o.PublicURL.Scheme = "https"
	c := newCertificateCheck(o, reg)
	if n, err := testutil.GatherAndCount(reg); n != 0 || err != nil {
		t.Errorf("%d values before the certificate was read, %v", n, err)
	}
	if c.address != "autopilot.example:443" {
		t.Errorf("the address is %s", c.address)
	}
}

// The certificate may be renewed while this replica cannot read it. Its old end must not cause a lasting alert.
func TestUnreadableCertificateCountsForADayAndIsLoggedOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c, logs := newCheckAt(&url.URL{Scheme: "https", Host: "autopilot.example"}, now)
	c.now = func() time.Time { return now }
	c.dial = func(context.Context) ([]*x509.Certificate, error) {
		return []*x509.Certificate{{NotBefore: now, NotAfter: now.Add(90 * 24 * time.Hour)}}, nil
	}
	c.check(t.Context())
	c.dial = func(context.Context) ([]*x509.Certificate, error) { return nil, errors.New("i/o timeout") }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c.check(ended)
	unreadable := func() int { return logs.FilterMessageSnippet("cannot read the certificate").Len() }
	if n := unreadable(); n != 0 {
		t.Errorf("%d lines about a failure, although only the service ends", n)
	}
	for _, tc := range []struct {
		after time.Duration
		want  int
	}{{time.Hour, 1}, {23 * time.Hour, 1}, {time.Hour, 0}} {
		now = now.Add(tc.after)
		c.check(t.Context())
		if n := testutil.CollectAndCount(c.expiry); n != tc.want || c.seen().Expires.IsZero() != (tc.want == 0) || c.seen().Unread != "i/o timeout" {
			t.Errorf("%s later: %d values, want %d; seen %+v", tc.after, n, tc.want, c.seen())
		}
	}
	if n := unreadable(); n != 1 {
		t.Errorf("%d lines about the same failure, want 1", n)
	}
}

func TestCertificateIsCheckedHourlyAndSoonerAfterAHangingHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		c, _ := newCheckAt(&url.URL{Scheme: "https", Host: "autopilot.example"}, start)
		c.dial = func(ctx context.Context) ([]*x509.Certificate, error) {
			deadline, _ := ctx.Deadline()
			at = append(at, time.Since(start))
			if len(at) == 1 {
				<-ctx.Done() // the host hangs
				if took := time.Since(start); took != certificateLimit || deadline.IsZero() {
					t.Errorf("the check ended after %s", took)
				}
				return nil, ctx.Err()
			}
			return []*x509.Certificate{{NotBefore: start, NotAfter: start.Add(90 * 24 * time.Hour)}}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		c.run(ctx)
		want := []time.Duration{0, certificateLimit + certificateRetry, certificateLimit + certificateRetry + certificateInterval}
		if len(at) != 3 || at[1] != want[1] || at[2] != want[2] {
			t.Errorf("checked after %v, want %v", at, want)
		}
	})
}
