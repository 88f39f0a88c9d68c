// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcsps/rds-autopilot/internal/shared"
)

// ErrUnavailable reports that a certificate cannot be fetched now. It means nothing about the message.
var ErrUnavailable = errors.New("signing certificate unavailable")

// ErrUnknownURL reports, beside ErrUnavailable, that the sender of the message is the likely cause: its URL has not
// signed a stored message. In addition, there is no certificate at it, or the certificate at another URL is known, or too
// many such messages wait.
var ErrUnknownURL = errors.New("the URL has not signed a stored message")

var errNoCertificate = errors.New("no usable certificate")

// Hosts returns the hosts from which Keys may fetch: exact, as host or host:port. They can change while the process
// runs.
type Hosts func() []string

// Fixed returns Hosts that never change.
func Fixed(hosts ...string) Hosts { return func() []string { return hosts } }

// Keys fetches signing certificates over TLS and caches them. Any number of messages wait for the same fetch. A
// certificate is kept forever, because only the configured hosts can add one. A failure is kept for keyRetry. So the
// limit of fetches bounds the number of failures to about 2,200.
//
// The sender of a message chooses the URL, and only a fetch shows whether it has a certificate. A URL that has signed a
// stored message is always fetched. The messages of all other URLs share maxFirst places, so that invented URLs do not
// delay it.
type Keys struct {
	hosts  Hosts
	client *http.Client
	now    func() time.Time

	certs *shared.Reads[string, *x509.Certificate] // by URL
	first chan struct{}                            // a place for each message whose URL has not signed a stored message
	known atomic.Bool                              // a certificate has been fetched
}

// NewKeys returns Keys that fetch from these hosts. The client must not follow redirects and must end each request
// within certFetchLimit; see NewClient.
func NewKeys(hosts Hosts, client *http.Client, now func() time.Time) *Keys {
	k := &Keys{hosts: hosts, client: client, now: now, first: make(chan struct{}, maxFirst)}
	k.certs = &shared.Reads[string, *x509.Certificate]{Now: now,
		Read: func(ctx context.Context, url string, _ time.Time) (*x509.Certificate, time.Time, error) {
			begun := now()
			cert, err := k.fetch(ctx, url)
			return cert, begun, err
		},
		Rest: func(_ time.Duration, err error) time.Duration {
			if err != nil {
				return keyRetry
			}
			return 0
		}}
	return k
}

// CheckURL returns ErrForged unless the URL has the form of SMN's certificate URLs on a configured host; see CertURL.
func (k *Keys) CheckURL(url string) error { return CertURL(url, k.hosts()) }

// Key returns the public key of the certificate at the URL, which is within its dates. signedBefore reports that the URL
// has signed a stored message. Key returns ErrUnavailable, with ErrUnknownURL if the sender is the likely cause, or
// ErrForged if CheckURL refuses the URL.
func (k *Keys) Key(ctx context.Context, url string, signedBefore bool) (*rsa.PublicKey, error) {
	if err := k.CheckURL(url); err != nil { // again, because nothing else may ever be fetched
		return nil, err
	}
	cert, err := k.certificate(ctx, url, signedBefore)
	switch {
	case err != nil && !signedBefore && (errors.Is(err, errNoCertificate) || k.known.Load()):
		return nil, fmt.Errorf("%w: %w: %w", ErrUnavailable, ErrUnknownURL, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	key, _ := cert.PublicKey.(*rsa.PublicKey) // ParseCertificate accepts no other type
	return key, nil
}

// certificate returns the certificate at the URL. A good one stays good until its end while its host is down.
func (k *Keys) certificate(ctx context.Context, url string, signedBefore bool) (*x509.Certificate, error) {
	now := k.now()
	oldest := now.Add(-keyLife)
	last, known := k.certs.Last(url)
	usable := known && Current(last.Value, now) == nil
	if known && !usable {
		oldest = now // the host may have another one by now
	}
	cert, ok, err := k.certs.Peek(url, oldest)
	if !ok {
		if !signedBefore && !known && !k.takePlace() {
			return nil, fmt.Errorf("%w, and too many such messages wait", ErrUnknownURL)
		}
		cert, err = k.certs.Get(ctx, url, oldest)
	}
	switch {
	case err != nil && usable:
		return last.Value, nil
	case err != nil:
		return nil, fmt.Errorf("fetch %s: %w", url, err)
	}
	return cert, nil
}

func (k *Keys) takePlace() bool {
	select {
	case k.first <- struct{}{}:
		time.AfterFunc(firstHold, func() { <-k.first })
		return true
	default:
		return false
	}
}

func (k *Keys) fetch(ctx context.Context, url string) (*x509.Certificate, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := k.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= http.StatusInternalServerError:
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%w: status %d", errNoCertificate, resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, certLimit+1))
	if err != nil {
		return nil, err
	}
	if len(data) > certLimit {
		return nil, fmt.Errorf("%w: more than %d bytes", errNoCertificate, certLimit)
	}
	cert, err := ParseCertificate(data)
	if err == nil {
		err = Current(cert, k.now())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoCertificate, err)
	}
	k.known.Store(true)
	return cert, nil
}
