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

// Bounds of the certificate cache. The URL carries an id, so a rotation brings a new one (otc-facts a.4).
const (
	keysKept       = 16               // more URLs than SMN would ever use at a time
	keyLife        = 24 * time.Hour   // then it is fetched anew, or at its NotAfter if that is sooner
	keyRetry       = 30 * time.Second // after a failure
	keyRefetch     = time.Minute      // the least age of a key that is fetched anew because it stopped matching
	fetchesPerMin  = 10               // URLs are the sender's choice; warm ones need none
	certLimit      = 64 << 10         // bytes
	certFetchLimit = 3 * time.Second
)

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

type keyEntry struct {
	done    chan struct{} // closed once the fetch has ended
	cert    *x509.Certificate
	err     error
	fetched time.Time
	used    time.Time
}

// NewKeys returns Keys that fetch from exactly these hosts (host or host:port) through the client, which must not
// follow redirects; see NewClient.
func NewKeys(hosts []string, client *http.Client, now func() time.Time) *Keys {
	return &Keys{hosts: hosts, client: client, now: now, entries: make(map[string]*keyEntry)}
}

// Verify checks the envelope's signature with the key it names. Errors are ErrForged or ErrUnavailable.
func (k *Keys) Verify(ctx context.Context, e Envelope) error {
	if err := CertURL(e.CertURL, k.hosts); err != nil {
		return err
	}
	for {
		key, fetched, err := k.key(ctx, e.CertURL)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		err = e.Verify(key)
		if err == nil || !k.forget(e.CertURL, fetched) {
			return err
		}
		// A kept certificate may have been exchanged under its URL: look once more before calling it forged.
	}
}

// forget drops a key that was fetched some time ago; false means that it is fresh and its word is final.
func (k *Keys) forget(url string, fetched time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	entry := k.entries[url]
	now := k.now()
	if entry == nil || !entry.fetched.Equal(fetched) || now.Sub(fetched) < keyRefetch || !k.mayFetch(now) {
		return false
	}
	k.start(url, now)
	return true
}

func (k *Keys) key(ctx context.Context, url string) (*rsa.PublicKey, time.Time, error) {
	k.mu.Lock()
	now := k.now()
	entry := k.entries[url]
	if entry == nil || entry.stale(now) {
		if !k.mayFetch(now) {
			k.mu.Unlock()
			return nil, time.Time{}, fmt.Errorf("more than %d certificate fetches in a minute", fetchesPerMin)
		}
		entry = k.start(url, now)
	}
	entry.used = now
	k.mu.Unlock()

	select {
	case <-entry.done:
	case <-ctx.Done():
		return nil, time.Time{}, fmt.Errorf("wait for %s: %w", url, ctx.Err())
	}
	if entry.cert == nil {
		return nil, time.Time{}, entry.err
	}
	if err := Current(entry.cert, k.now()); err != nil {
		return nil, time.Time{}, err
	}
	key, _ := entry.cert.PublicKey.(*rsa.PublicKey) // ParseCertificate takes no other
	return key, entry.fetched, nil
}

func (e *keyEntry) stale(now time.Time) bool {
	select {
	case <-e.done:
	default:
		return false
	}
	if e.cert == nil || e.err != nil {
		return now.Sub(e.fetched) >= keyRetry
	}
	return now.Sub(e.fetched) >= keyLife || now.After(e.cert.NotAfter)
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
func (k *Keys) start(url string, now time.Time) *keyEntry {
	old := k.entries[url]
	entry := &keyEntry{done: make(chan struct{}), fetched: now, used: now}
	k.entries[url] = entry
	for len(k.entries) > keysKept {
		k.evict(url)
	}
	go func() {
		defer close(entry.done)
		ctx, cancel := context.WithTimeout(context.Background(), certFetchLimit)
		defer cancel()
		cert, err := k.fetch(ctx, url)
		if err != nil {
			entry.err = fmt.Errorf("fetch %s: %w", url, err)
			if old != nil {
				entry.cert = old.cert // a failure must not displace a good one
			}
			return
		}
		entry.cert = cert
	}()
	return entry
}

// evict drops the entry that was used longest ago; k.mu is held.
func (k *Keys) evict(keep string) {
	var oldest string
	for url, e := range k.entries {
		if url != keep && (oldest == "" || e.used.Before(k.entries[oldest].used)) {
			oldest = url
		}
	}
	delete(k.entries, oldest)
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
