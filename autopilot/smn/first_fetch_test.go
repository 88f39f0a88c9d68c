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

const honestTopic = "urn:smn:eu-de:" + "0123456789abcdef0123456789abcdef" + ":honest"

// flood calls honest while strangers post invented URLs: perSecond of them on each of the topics.
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
		time.Sleep(5 * time.Second) // until messages of strangers end at their deadline
		honest(f)
		end()
		strangers.Wait()
		if rate := f.host.perSecond(); rate > maxFirst+2 || f.host.mostOpen > maxFirst+2 { // two are of honest messages
			t.Errorf("%d requests in a second, %d at a time", rate, f.host.mostOpen)
		}
		time.Sleep(time.Minute)
		if err := f.post(honestTopic, strings.Replace(newURL(), "b", "c", 1), true); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		if n := f.keys.certs.Len(); n > 3 { // the two certificates, and the failure of now
			t.Errorf("%d URLs are cached", n)
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
					t.Errorf("on a flooded topic, once the new URL is cached: %v", err)
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

func TestQuotaGivesOneTopicHalfOfTheFreePlaces(t *testing.T) {
	s := newQuota(8)
	for _, step := range []struct {
		topic string
		want  int
	}{{"flooded", 4}, {"another", 2}, {"third", 1}} {
		n := 0
		for s.acquire(step.topic) {
			n++
		}
		if n != step.want {
			t.Errorf("%s got %d places, want %d", step.topic, n, step.want)
		}
	}
	for range 4 {
		s.release("flooded")
	}
	if s.taken != 3 || len(s.by) != 2 {
		t.Errorf("after the release: %+v", s)
	}
}
