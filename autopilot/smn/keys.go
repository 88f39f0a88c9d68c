// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// ErrUnavailable reports that a certificate cannot be fetched now. It means nothing about the message.
var ErrUnavailable = errors.New("signing certificate unavailable")

// ErrLimited reports, beside ErrUnavailable, that the sender of the message is the likely cause: its URL has not signed
// a stored message, and there is no certificate at it, or too many such messages wait.
var ErrLimited = errors.New("the URL has not signed a stored message")

// errNoCertificate reports that the host has answered, but not with a certificate that can be used.
var errNoCertificate = errors.New("no usable certificate")

// Hosts returns the hosts from which Keys may fetch: exact, as host or host:port. They can change while the process
// runs.
type Hosts func() []string

// Fixed returns Hosts that never change.
func Fixed(hosts ...string) Hosts { return func() []string { return hosts } }

// Keys fetches signing certificates over TLS and caches them. Any number of messages wait for the same fetch.
//
// The sender of a message chooses the URL, and only a fetch shows whether it has a certificate. A URL that has signed a
// stored message is always fetched. All other URLs share a limited number of places, divided among the topics, so that
// invented URLs delay neither stored ones nor a new URL of another topic.
type Keys struct {
	hosts  Hosts
	client *http.Client
	now    func() time.Time

	mu      sync.Mutex
	entries map[string]*keyEntry
	places  *quota // of messages whose URL has not signed a stored message
}

// keyEntry is the cache entry of one URL. Keys.mu guards it.
type keyEntry struct {
	cert     *x509.Certificate // the last good certificate, or nil; a failed fetch does not remove it
	fetched  time.Time         // the start of the fetch that returned cert
	tried    time.Time         // the start of the last fetch
	err      error             // the error of the last fetch that ended
	fetching chan struct{}     // closed when the running fetch ends; nil if none is running
	used     time.Time
}

// NewKeys returns Keys that fetch from these hosts. The client must not follow redirects and must end each request
// within certFetchLimit; see NewClient.
func NewKeys(hosts Hosts, client *http.Client, now func() time.Time) *Keys {
	return &Keys{hosts: hosts, client: client, now: now, entries: make(map[string]*keyEntry), places: newQuota(maxFirst)}
}

// CheckURL returns ErrForged unless the URL has the form of SMN's certificate URLs on a configured host; see CertURL.
func (k *Keys) CheckURL(url string) error { return CertURL(url, k.hosts()) }

// Key returns the public key of the certificate at the URL, which is within its dates. The topic is the message's.
// signedBefore reports that the URL has signed a stored message. Key returns ErrUnavailable, with ErrLimited if the
// sender is the likely cause, or ErrForged if CheckURL refuses the URL.
func (k *Keys) Key(ctx context.Context, url, topic string, signedBefore bool) (*rsa.PublicKey, error) {
	if err := k.CheckURL(url); err != nil { // again, because nothing else may ever be fetched
		return nil, err
	}
	cert, err := k.certificate(ctx, url, topic, signedBefore)
	switch {
	case errors.Is(err, errNoCertificate) && !signedBefore:
		return nil, fmt.Errorf("%w: %w: %w", ErrUnavailable, ErrLimited, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	key, _ := cert.PublicKey.(*rsa.PublicKey) // ParseCertificate accepts no other type
	return key, nil
}

func (k *Keys) certificate(ctx context.Context, url, topic string, signedBefore bool) (*x509.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	entry := k.entries[url]
	if entry == nil {
		entry = &keyEntry{}
	}
	now := k.now()
	entry.used = now
	cert, err := entry.current(now)
	fresh := cert != nil && now.Sub(entry.fetched) < keyLife
	failed := entry.fetching == nil && entry.err != nil && now.Sub(entry.tried) < keyRetry
	if fresh || failed { // a good certificate stays good while its host is down
		return cert, err
	}
	starts := entry.fetching == nil
	if !signedBefore && entry.cert == nil {
		if !k.places.acquire(topic) {
			return nil, fmt.Errorf("%w, and too many such messages wait", ErrLimited)
		}
		if starts {
			time.AfterFunc(firstHold, func() { k.release(topic) })
		} else {
			defer k.places.release(topic)
		}
	}
	if starts {
		k.startFetch(url, entry, now)
	}
	if err := k.wait(ctx, entry.fetching); err != nil {
		return nil, fmt.Errorf("wait for %s: %w", url, err)
	}
	return entry.current(k.now())
}

// current returns the certificate if it is within its dates. Otherwise it returns the error of the last fetch, if any.
func (e *keyEntry) current(now time.Time) (*x509.Certificate, error) {
	if e.cert == nil {
		return nil, e.err
	}
	if err := Current(e.cert, now); err != nil {
		return nil, cmp.Or(e.err, fmt.Errorf("%w: %w", errNoCertificate, err))
	}
	return e.cert, nil
}

// wait unlocks k.mu, which the caller holds, until the channel is closed or the context is done.
func (k *Keys) wait(ctx context.Context, done <-chan struct{}) error {
	k.mu.Unlock()
	defer k.mu.Lock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *Keys) release(topic string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.places.release(topic)
}

// startFetch starts a fetch that does not end with the message that needs it, because others may wait for it. The
// caller holds k.mu.
func (k *Keys) startFetch(url string, entry *keyEntry, now time.Time) {
	done := make(chan struct{})
	entry.tried, entry.fetching = now, done
	k.entries[url] = entry
	if len(k.entries) > keysKept {
		k.evict()
	}
	go func() {
		defer close(done)
		cert, err := k.fetchSafely(url)
		k.mu.Lock()
		defer k.mu.Unlock()
		entry.fetching, entry.err = nil, nil
		if err != nil {
			entry.err = fmt.Errorf("fetch %s: %w", url, err)
			return
		}
		entry.cert, entry.fetched = cert, now
	}()
}

// fetchSafely returns a panic as an error. The fetch runs on a goroutine of its own, so a panic while it parses the
// file of another host would otherwise end the process.
func (k *Keys) fetchSafely(url string) (cert *x509.Certificate, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %T", p)
		}
	}()
	return k.fetch(url)
}

// evict removes the entry that was used longest ago, but first those without a certificate, so that invented URLs do
// not displace real ones. It keeps entries that are being fetched. The caller holds k.mu.
func (k *Keys) evict() {
	var victim string
	for url, e := range k.entries {
		if e.fetching != nil {
			continue
		}
		v := k.entries[victim]
		switch {
		case v == nil, v.cert != nil && e.cert == nil:
			victim = url
		case (v.cert == nil) == (e.cert == nil) && e.used.Before(v.used):
			victim = url
		}
	}
	delete(k.entries, victim)
}

func (k *Keys) fetch(url string) (*x509.Certificate, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
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
	return cert, nil
}
