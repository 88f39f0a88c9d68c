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
	"sync"
	"time"
)

// ErrUnavailable is a certificate that could not be had now. It says nothing about the message.
var ErrUnavailable = errors.New("signing certificate unavailable")

// Hosts are where something may be fetched from: host or host:port, exact. They can change while the process runs.
type Hosts func() []string

// Fixed are hosts that never change.
func Fixed(hosts ...string) Hosts { return func() []string { return hosts } }

// Keys gets signing keys by URL. It fetches a certificate over TLS, once for any number of waiting messages, and keeps it.
//
// The sender chooses the URL, and only a fetch shows whether a certificate is there. A URL that has signed for us before
// is fetched whatever else goes on. All others share a bounded number of fetches, divided among the topics.
type Keys struct {
	hosts  Hosts
	client *http.Client
	now    func() time.Time

	mu           sync.Mutex
	entries      map[string]*keyEntry
	firstFetches *quota        // fetches of URLs that have not signed for us before
	firstWaiters *quota        // messages that wait for those
	freed        chan struct{} // closed, and made anew, when a first fetch gives its place back
}

// keyEntry is what is known of one URL; Keys.mu guards it.
type keyEntry struct {
	cert     *x509.Certificate // the last good one, or nil
	fetched  time.Time         // when its fetch began
	tried    time.Time         // when the last fetch began
	err      error             // of the last fetch that ended; a failure does not displace a good certificate
	fetching chan struct{}     // closed when the fetch that runs ends; nil where none runs
	used     time.Time
}

// NewKeys returns Keys that fetch from exactly these hosts through the client, which must not follow redirects and must
// end what takes too long; see NewClient.
func NewKeys(hosts Hosts, client *http.Client, now func() time.Time) *Keys {
	return &Keys{
		hosts: hosts, client: client, now: now, entries: make(map[string]*keyEntry),
		firstFetches: newQuota(maxFirstFetches), firstWaiters: newQuota(maxFirstWaiters), freed: make(chan struct{}),
	}
}

// CheckURL returns ErrForged unless the URL is that of a certificate of SMN on a configured host; see CertURL.
func (k *Keys) CheckURL(url string) error { return CertURL(url, k.hosts()) }

// Key returns the public key of the certificate at that URL, which is within its dates. The topic is the message's;
// signedBefore says that the URL has signed for us before. Errors are ErrUnavailable, or ErrForged if the URL is refused.
func (k *Keys) Key(ctx context.Context, url, topic string, signedBefore bool) (*rsa.PublicKey, error) {
	if err := k.CheckURL(url); err != nil { // whatever the caller did before: nothing else is ever fetched
		return nil, err
	}
	key, err := k.key(ctx, url, topic, signedBefore)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return key, nil
}

// key returns a key whose certificate is within its dates.
func (k *Keys) key(ctx context.Context, url, topic string, known bool) (*rsa.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	waits := false
	defer func() {
		if waits {
			k.firstWaiters.release(topic)
		}
	}()
	var entry *keyEntry
	for {
		if entry == nil {
			if entry = k.entries[url]; entry == nil {
				entry = &keyEntry{}
			}
		}
		now := k.now()
		entry.used = now
		usable := entry.cert != nil && Current(entry.cert, now) == nil
		fresh := usable && now.Sub(entry.fetched) < keyLife
		failed := entry.fetching == nil && entry.err != nil && now.Sub(entry.tried) < keyRetry
		switch {
		case fresh, usable && failed: // a good certificate stays good while its host is away
			return publicKey(entry.cert), nil
		case failed:
			return nil, entry.err
		}
		known = known || entry.cert != nil
		if !known && !waits {
			if waits = k.firstWaiters.acquire(topic); !waits {
				return nil, errors.New("too many messages wait for certificates that have not signed for us before")
			}
		}
		var next <-chan struct{}
		switch {
		case entry.fetching != nil:
			next = entry.fetching
		case known:
			next = k.startFetch(url, entry, now, func() {})
		case k.firstFetches.acquire(topic):
			next = k.startFetch(url, entry, now, k.endFirstFetch(topic))
		default:
			next, entry = k.freed, nil // another may have begun with it by then
		}
		if err := k.wait(ctx, next); err != nil {
			return nil, fmt.Errorf("wait for %s: %w", url, err)
		}
	}
}

// wait unlocks k.mu, which is held, until the channel is closed or the context is done.
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

// endFirstFetch returns a function to call when a first fetch has ended. It gives the place back, but not before
// firstFetchTime is over: so no more fetches begin in that time than there are places, however fast the host answers.
func (k *Keys) endFirstFetch(topic string) (end func()) {
	began := time.Now()
	return func() {
		time.AfterFunc(firstFetchTime-time.Since(began), func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.firstFetches.release(topic)
			close(k.freed)
			k.freed = make(chan struct{})
		})
	}
}

func publicKey(cert *x509.Certificate) *rsa.PublicKey {
	key, _ := cert.PublicKey.(*rsa.PublicKey) // ParseCertificate accepts no other
	return key
}

// start begins a fetch that outlives the message which asked for it; k.mu is held.
func (k *Keys) startFetch(url string, entry *keyEntry, now time.Time, end func()) <-chan struct{} {
	done := make(chan struct{})
	entry.tried, entry.fetching = now, done
	k.entries[url] = entry
	if len(k.entries) > keysKept {
		k.evict()
	}
	go func() {
		defer close(done)
		defer end()
		cert, err := k.fetch(url)
		k.mu.Lock()
		defer k.mu.Unlock()
		entry.fetching, entry.err = nil, nil
		if err != nil {
			entry.err = fmt.Errorf("fetch %s: %w", url, err)
			return
		}
		entry.cert, entry.fetched = cert, now
	}()
	return done
}

// evict drops the entry that was used longest ago, and those without a certificate first: invented URLs must not displace
// real ones, nor those that are being fetched. k.mu is held.
func (k *Keys) evict() {
	var victim string
	for url, e := range k.entries {
		if e.fetching != nil {
			continue
		}
		v := k.entries[victim]
		if v == nil || (e.cert == nil) != (v.cert == nil) && e.cert == nil || (e.cert == nil) == (v.cert == nil) && e.used.Before(v.used) {
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
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, certLimit+1))
	if err != nil {
		return nil, err
	}
	if len(data) > certLimit {
		return nil, fmt.Errorf("more than %d bytes", certLimit)
	}
	cert, err := ParseCertificate(data)
	if err != nil {
		return nil, err
	}
	if err := Current(cert, k.now()); err != nil {
		return nil, err
	}
	return cert, nil
}
