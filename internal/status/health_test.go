// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/internal/status"
)

// healthy returns a page with these replicas. The leader is rds-autopilot-a.
func healthy(t *testing.T, replicas func(context.Context) ([]status.Replica, error)) http.Handler {
	t.Helper()
	return newPage(t, func(o *status.Options) {
		o.Replicas, o.Now, o.Leader = replicas, time.Now, func() string { return "rds-autopilot-a" }
	})
}

func TestHealthShowsLeaderAndReplicas(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		replicas []status.Replica
		err      error
		want     string
	}{
		"three": {[]status.Replica{
			{Pod: "rds-autopilot-a", Addresses: []string{"10.0.0.1", "fd00::1"}, Ready: true},
			{Pod: "rds-autopilot-b", Addresses: []string{"10.0.0.2"}},
			{Pod: "rds-autopilot-c", Addresses: []string{"10.0.0.3"}, Ready: true, Stopping: true},
		}, nil, "rds-autopilot-a 10.0.0.1, fd00::1 ready leads rds-autopilot-b 10.0.0.2 not ready follows rds-autopilot-c 10.0.0.3 stopping follows"},
		"an address of nobody": {[]status.Replica{{Addresses: []string{"10.0.0.1"}, Ready: true}}, nil, "unknown 10.0.0.1 ready follows"},
		"none":                 {nil, nil, "No replicas found: the Service has no EndpointSlice in this namespace."},
		"no right":             {nil, errors.New("endpointslices is <forbidden>"), "The replicas could not be listed: endpointslices is <forbidden>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := healthy(t, func(context.Context) ([]status.Replica, error) { return tc.replicas, tc.err })
			if page := text(get(t, h, "/health", http.StatusOK)); !strings.Contains(page, tc.want) {
				t.Errorf("the page lacks %q: %s", tc.want, page)
			}
		})
	}
}

func TestOnlyTheHealthPageListsReplicasAndCachesThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		var hangs atomic.Bool
		h := healthy(t, func(ctx context.Context) ([]status.Replica, error) {
			asked.Add(1)
			if hangs.Load() {
				<-ctx.Done()
			}
			return nil, ctx.Err()
		})
		get(t, h, "/", http.StatusOK)
		if asked.Load() != 0 {
			t.Error("the overview asks for replicas")
		}
		for range 50 {
			get(t, h, "/health", http.StatusOK)
		}
		if asked.Load() != 1 {
			t.Errorf("50 looks ask %d times", asked.Load())
		}
		time.Sleep(11 * time.Second)
		hangs.Store(true)
		begin := time.Now()
		page := text(get(t, h, "/health", http.StatusOK))
		if waited := time.Since(begin); asked.Load() != 2 || waited != 2*time.Second || !strings.Contains(page, "no answer yet") {
			t.Errorf("asked %d times; after %s: %s", asked.Load(), waited, page)
		}
		time.Sleep(15 * time.Second) // until the question ends
	})
}

func TestHealthShowsTheCertificateOfThePublicURL(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		certificate status.Certificate
		want, state string
	}{
		"good":    {status.Certificate{Expires: now().Add(60 * 24 * time.Hour)}, "Certificate of the public URL expires in 60d 2027-01-21 12:00:00 UTC", "state good"},
		"soon":    {status.Certificate{Expires: now().Add(72 * time.Hour), LastDays: true}, "expires in 3d", "state bad"},
		"expired": {status.Certificate{Expires: now().Add(-72 * time.Hour), LastDays: true, Invalid: "it is <expired>"}, "expires 3d ago 2026-11-19 12:00:00 UTC It is not valid: it is <expired>", "state bad"},
		"away":    {status.Certificate{Unread: "i/o timeout"}, "Certificate of the public URL This replica cannot read it now: i/o timeout", ""},
		"begun":   {status.Certificate{}, "Certificate of the public URL not read yet", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newPage(t, func(o *status.Options) { o.Certificate = func() status.Certificate { return tc.certificate } })
			root := get(t, h, "/health", http.StatusOK)
			if page := text(root); !strings.Contains(page, tc.want) {
				t.Errorf("the page lacks %q: %s", tc.want, page)
			}
			if tc.state != "" && len(classed(root, "span", tc.state)) == 0 {
				t.Errorf("no %s", tc.state)
			}
		})
	}
	if page := text(get(t, handler(t, &cache{}), "/health", http.StatusOK)); strings.Contains(page, "Certificate") {
		t.Error("a page of a service with an http URL has a certificate")
	}
}
