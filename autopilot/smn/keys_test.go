// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestDialRefusesAddressesThatAreNotPublic(t *testing.T) {
	d := dialer{Fixed("smn.eu-de.otc.t-systems.com", "127.0.0.1:8443", "10.1.2.3", "localhost:8443")}
	const public = "smn.eu-de.otc.t-systems.com:443"
	// 64:ff9b::/96 is NAT64, by which a network with IPv6 only reaches SMN.
	for _, address := range []string{
		"80.158.1.1", "100.125.1.1", "[2003:2:4::1]", "[64:ff9b::100.125.1.1]", "[64:ff9b::80.158.1.1]",
	} {
		if err := d.checkAddress(public, address+":443"); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{
		"100.64.0.1", "100.100.100.200", "0.1.2.3", "240.0.0.1", "[::ffff:10.0.0.1]", "[::7f00:1]",
		"[2002:7f00:1::]", "[2001:0:1::1]", "[fd00:ec2::254]", "127.0.0.1", "10.1.2.3", "169.254.169.254",
		"[::ffff:127.0.0.1]", "[::1]", "[fe80::1]", "[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "0.0.0.0",
	} {
		if d.checkAddress(public, address+":443") == nil {
			t.Errorf("%s is allowed", address)
		}
	}
	for _, tc := range []struct {
		asked, resolved string
		ok              bool
	}{
		{"127.0.0.1:8443", "127.0.0.1:8443", true},
		{"127.0.0.1:8444", "127.0.0.1:8444", false},
		{"10.1.2.3:443", "10.1.2.3:443", true},            // a configured private address
		{"10.1.2.3:443", "[64:ff9b::10.1.2.3]:443", true}, // through NAT64
		{"10.1.2.3:443", "10.1.2.4:443", false},
		{"localhost:8443", "[::1]:8443", true},
		{"localhost:8443", "10.1.2.3:8443", false},
	} {
		if err := d.checkAddress(tc.asked, tc.resolved); (err == nil) != tc.ok {
			t.Errorf("%s at %s: %v, want allowed %t", tc.asked, tc.resolved, err, tc.ok)
		}
	}
}

func TestHostsAreComparedInOneForm(t *testing.T) {
	for entry, want := range map[string]string{
		"smn.example": "smn.example", "SMN.Example": "smn.example", "smn.example:443": "smn.example",
		"smn.example:8443": "smn.example:8443", "127.0.0.1:8443": "127.0.0.1:8443", "[::1]:8443": "[::1]:8443",
		"https://smn.example": "", "smn.example/smn": "", "smn.example:": "", "smn.example:port": "", "*.example": "",
		"me@smn.example": "", "smn example": "", "smn.example=10.1.2.3": "", "": "",
	} {
		if name, err := ParseHost(entry); (err != nil) != (want == "") || name != want {
			t.Errorf("%q: %q, %v; want %q", entry, name, err, want)
		}
	}
}

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
	keys *Keys
	host *fakeHost
}

// in2027 is the time of a bubble, which begins in 2000, in the year 2027, in which the example's certificate is valid.
func in2027() time.Time { return time.Now().AddDate(27, 0, 0) }

// flood calls honest while strangers post invented URLs.
func flood(t *testing.T, takes time.Duration, perSecond int, honest func(*flooded)) {
	synctest.Test(t, func(t *testing.T) {
		f := &flooded{t, nil, &fakeHost{cert: example(t, "throwaway_cert.pem"), takes: takes}}
		f.keys = NewKeys(Fixed(fakeName), &http.Client{Transport: f.host, Timeout: certFetchLimit}, in2027)
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

// post fetches the key of an authentic message within the receiver's time.
func (f *flooded) post(url string, signedBefore bool) error {
	ctx, done := context.WithTimeout(f.Context(), 3500*time.Millisecond)
	defer done()
	_, err := f.keys.Key(ctx, url, signedBefore)
	return err
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
		f := &flooded{t, nil, &fakeHost{}}
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

// In a network whose only way out is a proxy, certificates and confirmations must use it as the cloud's API does. The
// proxy has a private address and resolves the names.
func TestClientTakesTheProxy(t *testing.T) {
	asked := ""
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.Host
		w.WriteHeader(http.StatusForbidden)
	}))
	defer proxy.Close()
	via := func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	resp, err := NewClient(Fixed("smn.example"), nil, via).Get("https://smn.example/smn")
	if err == nil {
		_ = resp.Body.Close()
	}
	want := "through the proxy " + strings.TrimPrefix(proxy.URL, "http://")
	if asked != "CONNECT smn.example:443" || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the proxy was asked to %s, and the error is %v", asked, err)
	}
}
