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

// Keys gets signing keys by URL: fetched over TLS, kept, and fetched once for any number of waiters.
type Keys struct {
	hosts  []string
	client *http.Client
	now    func() time.Time

	mu      sync.Mutex
	entries map[string]*keyEntry
	minute  time.Time // the minute in which fetches are counted
	fetches int
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

// NewKeys returns Keys that fetch from exactly these hosts (host or host:port) through the client, which must not
// follow redirects and must end what takes too long; see NewClient.
func NewKeys(hosts []string, client *http.Client, now func() time.Time) *Keys {
	return &Keys{hosts: hosts, client: client, now: now, entries: make(map[string]*keyEntry)}
}

// Verify checks the envelope's signature with the key it names. Errors are ErrForged or ErrUnavailable.
func (k *Keys) Verify(ctx context.Context, e Envelope) error {
	if err := CertURL(e.CertURL, k.hosts); err != nil {
		return err
	}
	key, fetched, err := k.key(ctx, e.CertURL, time.Time{})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	forged := e.Verify(key)
	if forged == nil || k.now().Sub(fetched) < keyRefetch {
		return forged
	}
	// A kept certificate may have been exchanged under its URL: look once more before calling it forged.
	if key, _, err = k.key(ctx, e.CertURL, fetched); err != nil {
		return fmt.Errorf("%w: the kept one does not match: %w", ErrUnavailable, err)
	}
	return e.Verify(key)
}

// key returns a key that is within its dates and was fetched after some time, and when it was fetched.
func (k *Keys) key(ctx context.Context, url string, after time.Time) (*rsa.PublicKey, time.Time, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	entry := k.entries[url]
	if entry == nil {
		entry = &keyEntry{}
	}
	for {
		now := k.now()
		entry.used = now
		usable := entry.cert != nil && entry.fetched.After(after) && Current(entry.cert, now) == nil
		if usable && now.Sub(entry.fetched) < keyLife {
			return rsaKey(entry.cert), entry.fetched, nil
		}
		if err := k.ensureFetch(url, entry, now); err != nil {
			if usable { // a host that is away takes nothing from a good certificate
				return rsaKey(entry.cert), entry.fetched, nil
			}
			return nil, time.Time{}, err
		}
		if err := k.wait(ctx, entry.fetching); err != nil {
			return nil, time.Time{}, fmt.Errorf("wait for %s: %w", url, err)
		}
	}
}

// wait lets go of k.mu, which is held, until the fetch has ended.
func (k *Keys) wait(ctx context.Context, fetching <-chan struct{}) error {
	k.mu.Unlock()
	defer k.mu.Lock()
	select {
	case <-fetching:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ensureFetch has the certificate being fetched, or returns why it is not; k.mu is held.
func (k *Keys) ensureFetch(url string, entry *keyEntry, now time.Time) error {
	switch {
	case entry.fetching != nil:
		return nil
	case entry.err != nil && now.Sub(entry.tried) < keyRetry:
		return entry.err
	case !k.mayFetch(now):
		return fmt.Errorf("more than %d certificate fetches in a minute", fetchesPerMin)
	}
	k.start(url, entry, now)
	return nil
}

func rsaKey(cert *x509.Certificate) *rsa.PublicKey {
	key, _ := cert.PublicKey.(*rsa.PublicKey) // ParseCertificate takes no other
	return key
}

// mayFetch counts one fetch; k.mu is held.
func (k *Keys) mayFetch(now time.Time) bool {
	if m := now.Truncate(time.Minute); !m.Equal(k.minute) {
		k.minute, k.fetches = m, 0
	}
	k.fetches++
	return k.fetches <= fetchesPerMin
}

// start begins a fetch that outlives the message which asked for it; k.mu is held.
func (k *Keys) start(url string, entry *keyEntry, now time.Time) {
	done := make(chan struct{})
	entry.tried, entry.fetching = now, done
	k.entries[url] = entry
	for len(k.entries) > keysKept {
		k.evict(url)
	}
	go func() {
		defer close(done)
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
}

// evict drops the entry that was used longest ago, one without a certificate first: whoever invents URLs must not
// displace those that are real. k.mu is held.
func (k *Keys) evict(keep string) {
	var victim string
	for url, e := range k.entries {
		if url == keep {
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
