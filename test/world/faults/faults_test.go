// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world/faults"
)

// server stands for the API server and notes what it was asked.
type server struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newServer(t *testing.T) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.seen = append(s.seen, faults.KubeName(r)+" "+string(body)+" "+r.Header.Get("Authorization"))
		s.mu.Unlock()
		_, _ = io.WriteString(w, "first")
		if r.URL.Query().Get("watch") == "true" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, "second")
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func newProxy(t *testing.T, s *server, hooks faults.Hooks) *faults.Proxy {
	t.Helper()
	p, err := faults.NewProxy(&rest.Config{Host: s.URL, BearerToken: "secret"}, hooks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

const rap = "/apis/autopilot.otc.mcsps.de/v1alpha1/namespaces/default/rdsautopilots/db/status"

func patch(ctx context.Context, p *faults.Proxy) (status int, header http.Header, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, p.URL+rap, strings.NewReader("x"))
	if err != nil {
		return 0, nil, "", err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header, string(text), errors.Join(err, res.Body.Close())
}

func TestFaultBeforeOrAfterTheRequestIsApplied(t *testing.T) {
	const applied = "patch rdsautopilots/status x Bearer secret"
	for name, tc := range map[string]struct {
		fault  simcloud.Fault
		status int // 0: no whole answer
		asked  bool
	}{
		"none":               {simcloud.Fault{}, 200, true},
		"failed before":      {simcloud.Fault{Status: 500}, 500, false},
		"failed after":       {simcloud.Fault{Status: 500, Apply: true}, 500, true},
		"busy before":        {faults.Busy(2*time.Second, false), 429, false},
		"busy after":         {faults.Busy(2*time.Second, true), 429, true},
		"hangs before":       {simcloud.Fault{Hang: true}, 0, false},
		"hangs after":        {simcloud.Fault{Hang: true, Apply: true}, 0, true},
		"cut in its answer":  {simcloud.Fault{Cut: true}, 0, true},
		"slow":               {simcloud.Fault{Delay: time.Millisecond}, 200, true},
		"slow and then gone": {simcloud.Fault{Delay: time.Hour}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			answered := make(chan int, 1)
			p := newProxy(t, s, faults.Hooks{
				Fault: func(*http.Request) *simcloud.Fault { return &tc.fault },
				Answered: func(_ *http.Request, body []byte, status int) {
					if string(body) == "x" {
						answered <- status
					}
				},
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			switch {
			case tc.fault.Hang && tc.fault.Apply: // the client leaves once it is applied
				go func() { answered <- <-answered; cancel() }()
			case tc.status == 0 && !tc.fault.Cut:
				time.AfterFunc(50*time.Millisecond, cancel)
			}
			status, header, body, err := patch(ctx, p)
			switch {
			case tc.status == 0 && err == nil:
				t.Errorf("answered %d %q", status, body)
			case tc.status != 0 && (err != nil || status != tc.status):
				t.Errorf("answered %d, %v, want %d", status, err, tc.status)
			case tc.status == 200 && body != "firstsecond", tc.status == 500 && body != "", tc.status == 429 && header.Get("Retry-After") != "2":
				t.Errorf("answered %q %v", body, header)
			}
			if got := slices.Equal(s.asked(), []string{applied}); got != tc.asked || !tc.asked && len(s.asked()) > 0 {
				t.Errorf("the server was asked %q, want that: %v", s.asked(), tc.asked)
			}
			if tc.asked && <-answered != 200 {
				t.Error("the answer was not told")
			}
		})
	}
}

func TestSameSeedGivesSameFaultsInAnyOrder(t *testing.T) {
	throw := func(seed uint64, names ...string) map[string][]simcloud.Fault {
		d := faults.NewRandom(seed, func(r *http.Request) string { return r.Method }, faults.Kinds(time.Second)...)
		got := map[string][]simcloud.Fault{}
		for i := range 200 {
			if i == 10 {
				d.Set(0.5) // before, nothing goes wrong
			}
			for _, name := range names {
				fault := simcloud.Fault{Body: "none"}
				if f := d.Fault(httptest.NewRequest(name, "/", nil)); f != nil {
					fault = *f
				}
				got[name] = append(got[name], fault)
			}
		}
		return got
	}
	same := func(a, b []simcloud.Fault) bool {
		return slices.EqualFunc(a, b, func(x, y simcloud.Fault) bool {
			return x.Status == y.Status && x.Apply == y.Apply && x.Hang == y.Hang && x.Cut == y.Cut && x.Delay == y.Delay && x.Body == y.Body
		})
	}
	first, second := throw(7, "GET", "PUT"), throw(7, "PUT", "GET")
	if !same(first["GET"], second["GET"]) || !same(first["PUT"], second["PUT"]) {
		t.Error("the order of the requests changed what went wrong")
	}
	if other := throw(8, "GET", "PUT"); same(first["GET"], other["GET"]) || same(first["GET"], first["PUT"]) {
		t.Error("another seed or name makes the same faults")
	}
	wrong := 0
	for i, f := range first["GET"] {
		if f.Body != "none" {
			wrong++
			if i < 10 {
				t.Error("something went wrong before it was to")
			}
		}
	}
	if wrong < 60 || wrong > 130 {
		t.Errorf("%d of 190 went wrong, want about half", wrong)
	}
}
