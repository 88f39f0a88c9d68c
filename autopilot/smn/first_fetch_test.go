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

// fakeHost simulates a certificate host without a network. It has a certificate at two URLs.
type fakeHost struct {
	cert  []byte
	takes time.Duration // for what it does not have

	mu    sync.Mutex
	asked []time.Time
	now   int // open requests
	most  int
}

const fakeName = "smn.example"

// The URLs of SMN's two certificates, before and after it has changed its key.
func oldURL() string {
	return "https://" + fakeName + "/smn/SMN_eu-de_" + strings.Repeat("a", 32) + ".pem"
}
func newURL() string {
	return "https://" + fakeName + "/smn/SMN_eu-de_" + strings.Repeat("b", 32) + ".pem"
}

func (h *fakeHost) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.asked = append(h.asked, time.Now())
	h.now++
	h.most = max(h.most, h.now)
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.now--
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
	for i, at := range h.asked {
		for at.Sub(h.asked[first]) >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// flooded is a replica that starts with an empty cache, while strangers post invented URLs.
type flooded struct {
	*testing.T
	keys   *Keys
	host   *fakeHost
	signer signer
}

const honestTopic = "urn:smn:eu-de:" + "0123456789abcdef0123456789abcdef" + ":honest"

// flood posts perSecond invented URLs on each of so many topics while it calls honest.
func flood(t *testing.T, takes time.Duration, topics, perSecond int, honest func(*flooded)) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t, time.Now().Add(-time.Hour), time.Now().Add(30*24*time.Hour))
		f := &flooded{t, nil, &fakeHost{cert: s.cert, takes: takes}, s}
		f.keys = NewKeys(Fixed(fakeName), &http.Client{Transport: f.host, Timeout: certFetchLimit}, time.Now)
		stop, end := context.WithCancel(t.Context())
		var strangers sync.WaitGroup
		for topic := range topics {
			strangers.Go(func() {
				for i := 0; stop.Err() == nil; i++ {
					e := Envelope{
						Type: TypeNotification, TopicURN: fmt.Sprintf("flooded-%d", topic), Signature: "x",
						CertURL: fmt.Sprintf("https://%s/smn/SMN_eu-de_%016x%016x.pem", fakeName, topic, i),
					}
					strangers.Go(func() {
						ctx, done := context.WithTimeout(stop, 3500*time.Millisecond)
						defer done()
						if err := verify(ctx, f.keys, e, false); !errors.Is(err, ErrUnavailable) {
							t.Errorf("an invented URL: %v", err)
						}
					})
					time.Sleep(time.Second / time.Duration(perSecond))
				}
			})
		}
		time.Sleep(5 * time.Second) // the flood is at its height
		honest(f)
		end()
		strangers.Wait()
		if rate := f.host.perSecond(); rate > maxFirst+2 || f.host.most > maxFirst+2 { // and the honest ones
			t.Errorf("the host was asked %d times in a second, %d at a time", rate, f.host.most)
		}
		time.Sleep(time.Minute)
		if err := f.post(honestTopic, strings.Replace(newURL(), "b", "c", 1), true); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		if n := f.keys.certs.Len(); n > 3 { // the failures before this one are forgotten
			t.Errorf("%d URLs are kept", n)
		}
		f.keys.mu.Lock()
		defer f.keys.mu.Unlock()
		if f.keys.places.taken+len(f.keys.places.by) > 0 {
			t.Errorf("places were not released: %+v", f.keys.places)
		}
	})
}

// post verifies an authentic message within the receiver's time.
func (f *flooded) post(topic, url string, signedBefore bool) error {
	e := f.signer.sign(f.T, Envelope{Type: TypeNotification, TopicURN: topic, CertURL: url})
	ctx, done := context.WithTimeout(f.Context(), 3500*time.Millisecond)
	defer done()
	return verify(ctx, f.keys, e, signedBefore)
}

func TestHonestMessagesAreVerifiedDuringAFloodOfInventedURLs(t *testing.T) {
	for name, takes := range map[string]time.Duration{"the host answers at once": 20 * time.Millisecond, "the host hangs": time.Hour} {
		t.Run(name, func(t *testing.T) {
			flood(t, takes, 3, 1000, func(f *flooded) {
				if err := f.post("flooded-0", oldURL(), true); err != nil {
					t.Errorf("on a flooded topic, by a URL that has signed a stored message: %v", err)
				}
				if err := f.post(honestTopic, newURL(), false); err != nil {
					t.Errorf("on another topic, by a new URL: %v", err)
				}
				if err := f.post("flooded-0", newURL(), false); err != nil {
					t.Errorf("on a flooded topic, once the new URL is kept: %v", err)
				}
			})
		})
	}
	for name, tc := range map[string]struct {
		topics, perSecond int
		topic             string
	}{
		"30 topics, another topic":                       {30, 50, honestTopic},
		"1,000 invented URLs per minute, the same topic": {1, 1000 / 60, "flooded-0"},
	} {
		t.Run(name, func(t *testing.T) {
			flood(t, 20*time.Millisecond, tc.topics, tc.perSecond, func(f *flooded) {
				if err := f.post(tc.topic, newURL(), false); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestOneFetchServesAThousandMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		host := &fakeHost{cert: s.cert}
		f := &flooded{t, NewKeys(Fixed(fakeName), &http.Client{Transport: host}, time.Now), host, s}
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				if err := f.post(fmt.Sprintf("topic-%d", i), newURL(), i >= maxFirst-1); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(host.asked) != 1 {
			t.Errorf("%d fetches, want 1", len(host.asked))
		}
		time.Sleep(2 * firstHold)
	})
}

func TestQuotaGivesOneTopicHalfOfTheFreePlaces(t *testing.T) {
	s := newQuota(8)
	n := 0
	for s.acquire("flooded") {
		n++
	}
	if n != 4 || !s.acquire("another") || !s.acquire("another") || s.acquire("another") || !s.acquire("third") || s.acquire("third") {
		t.Errorf("%d, %+v", n, s)
	}
	for range 4 {
		s.release("flooded")
	}
	if s.taken != 3 || len(s.by) != 2 {
		t.Errorf("%+v", s)
	}
}

type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("a file of another host") }

func TestPanicInAFetchIsAnErrorOfItsMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := NewKeys(Fixed(fakeName), &http.Client{Transport: panicking{}}, time.Now)
		if _, err := keys.Key(t.Context(), "https://"+fakeName+"/smn/SMN_eu-de_"+strings.Repeat("a", 32)+".pem", "topic", true); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%v", err)
		}
	})
}
