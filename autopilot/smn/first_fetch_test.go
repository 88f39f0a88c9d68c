// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeHost is a certificate host without a network. It has a certificate at two URLs.
type fakeHost struct {
	cert  []byte
	takes time.Duration // to answer a request for another URL

	mu       sync.Mutex
	requests []time.Time
	open     int // requests without an answer yet
	mostOpen int
}

const fakeName = "smn.example"

// oldURL and newURL return the URLs of SMN's certificates before and after it has changed its key.
func oldURL() string {
	return "https://" + fakeName + "/smn/SMN_eu-de_" + strings.Repeat("a", 32) + ".pem"
}
func newURL() string {
	return "https://" + fakeName + "/smn/SMN_eu-de_" + strings.Repeat("b", 32) + ".pem"
}

func (h *fakeHost) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.requests = append(h.requests, time.Now())
	h.open++
	h.mostOpen = max(h.mostOpen, h.open)
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.open--
		h.mu.Unlock()
	}()
	status, body, takes := http.StatusNotFound, []byte(nil), h.takes
	if url := r.URL.String(); url == oldURL() || url == newURL() {
		status, body, takes = http.StatusOK, h.cert, 50*time.Millisecond
	}
	select {
	case <-time.After(takes):
		return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// perSecond returns the largest number of requests in any second.
func (h *fakeHost) perSecond() (most int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := 0
	for i, at := range h.requests {
		for at.Sub(h.requests[first]) >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// flooded has the keys of a replica that starts with an empty cache while strangers post invented URLs.
type flooded struct {
	*testing.T
	keys   *Keys
	host   *fakeHost
	signer signer
}

// flood calls honest while strangers post invented URLs.
func flood(t *testing.T, takes time.Duration, perSecond int, honest func(*flooded)) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t, time.Now().Add(-time.Hour), time.Now().Add(30*24*time.Hour))
		f := &flooded{t, nil, &fakeHost{cert: s.cert, takes: takes}, s}
		f.keys = NewKeys(Fixed(fakeName), &http.Client{Transport: f.host, Timeout: certFetchLimit}, time.Now)
		stop, end := context.WithCancel(t.Context())
		var strangers sync.WaitGroup
		strangers.Go(func() {
			for i := 0; stop.Err() == nil; i++ {
				strangers.Go(func() {
					ctx, done := context.WithTimeout(stop, 3500*time.Millisecond)
					defer done()
					url := fmt.Sprintf("https://%s/smn/SMN_eu-de_%032x.pem", fakeName, i)
					if _, err := f.keys.Key(ctx, url, false); !errors.Is(err, ErrUnavailable) {
						t.Errorf("an invented URL: %v", err)
					}
				})
				time.Sleep(time.Second / time.Duration(perSecond))
			}
		})
		time.Sleep(5 * time.Second) // until messages of strangers end at their deadline
		honest(f)
		end()
		strangers.Wait()
		if rate := f.host.perSecond(); rate > maxFirst+2 || f.host.mostOpen > maxFirst+2 { // two are of honest messages
			t.Errorf("%d requests in a second, %d at a time", rate, f.host.mostOpen)
		}
		time.Sleep(time.Minute)
		if err := f.post(strings.Replace(newURL(), "b", "c", 1), true); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		if n := len(f.keys.first); n > 0 {
			t.Errorf("%d places were not released", n)
		}
	})
}

// post verifies an authentic message within the receiver's time.
func (f *flooded) post(url string, signedBefore bool) error {
	e := f.signer.sign(f.T, Envelope{Type: TypeNotification, CertURL: url})
	ctx, done := context.WithTimeout(f.Context(), 3500*time.Millisecond)
	defer done()
	return verify(ctx, f.keys, e, signedBefore)
}

func TestHonestMessagesAreVerifiedDuringAFloodOfInventedURLs(t *testing.T) {
	for name, takes := range map[string]time.Duration{"the host answers at once": 20 * time.Millisecond, "the host hangs": time.Hour} {
		t.Run(name, func(t *testing.T) {
			flood(t, takes, 3000, func(f *flooded) {
				if err := f.post(oldURL(), true); err != nil {
					t.Errorf("by a URL that has signed a stored message: %v", err)
				}
				if err := f.post(oldURL(), false); err != nil {
					t.Errorf("once its certificate is in memory: %v", err)
				}
			})
		})
	}
	t.Run("a new URL, and 50 invented ones per second", func(t *testing.T) {
		flood(t, 20*time.Millisecond, 50, func(f *flooded) {
			if err := f.post(newURL(), false); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestURLWithoutCertificateIsFetchedOnceIn30Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flooded{t, nil, &fakeHost{}, newSigner(t, time.Now(), time.Now().Add(time.Hour))}
		f.keys = NewKeys(Fixed(fakeName), &http.Client{Transport: f.host}, time.Now)
		for range 29 {
			if err := f.post(strings.Replace(newURL(), "b", "c", 1), false); !errors.Is(err, ErrUnknownURL) {
				t.Error(err)
			}
			time.Sleep(time.Second)
		}
		if n := len(f.host.requests); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}
