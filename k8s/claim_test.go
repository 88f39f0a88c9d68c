// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// startClaim holds a claim until end, and sends the result of WithClaim.
func startClaim(t *testing.T, c *Cluster, own Claim) (ended chan error, end context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan error, 1)
	go func() { ended <- c.WithClaim(ctx, own, func(ctx context.Context) { <-ctx.Done() }) }()
	synctest.Wait()
	return ended, cancel
}

func TestClaimIsRefusedWhenAnotherInstallationManagesTheNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newLeases(t).connect(t)
		defer c.Close()
		ours := Claim{Release: "a/rds-autopilot", PublicURL: "https://a.example/smn", Namespaces: []string{"shop", "billing"}}
		ended, end := startClaim(t, c, ours)
		time.Sleep(time.Hour)
		for name, tc := range map[string]struct {
			claim   Claim
			refused bool
		}{
			"over all namespaces":          {Claim{Release: "b/rds-autopilot"}, true},
			"over one of them":             {Claim{Release: "b/rds-autopilot", Namespaces: []string{"other", "shop"}}, true},
			"in the same namespace":        {Claim{Release: "a/second", Namespaces: []string{"shop"}}, true},
			"over others":                  {Claim{Release: "b/rds-autopilot", Namespaces: []string{"other"}}, false},
			"a replica with its new URL":   {Claim{Release: "a/rds-autopilot", PublicURL: "https://new.example/smn"}, false},
			"a replica after a restart":    {ours, false},
			"a replica over one namespace": {Claim{Release: "a/rds-autopilot", Namespaces: []string{"shop"}}, false},
		} {
			err := c.CheckClaim(t.Context(), tc.claim)
			if claimed, refused := errors.AsType[*ClaimedError](err); refused != tc.refused || err != nil && claimed == nil {
				t.Errorf("%s: %v", name, err)
			} else if refused && !strings.Contains(err.Error(), "a/rds-autopilot with --public-url=https://a.example/smn already manages namespace shop, billing") {
				t.Errorf("%s: it does not name the other installation: %v", name, err)
			}
		}
		c.namespaces = []string{"other"}
		if !c.IsWatched("other") || !c.IsWatched("shop") || c.IsWatched("left") {
			t.Errorf("watched: ours %t, theirs %t, nobody's %t", c.IsWatched("other"), c.IsWatched("shop"), c.IsWatched("left"))
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		time.Sleep(claimDuration)
		if err := c.CheckClaim(t.Context(), Claim{Release: "b/rds-autopilot"}); err != nil {
			t.Errorf("after the first one was removed: %v", err)
		}
		if c.IsWatched("shop") {
			t.Error("watched by an installation that was removed")
		}
	})
}

func TestOneOfTwoInstallationsEndsWhenBothStartTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newLeases(t)
		c, _ := server.connect(t)
		defer c.Close()
		other, _ := server.connect(t)
		defer other.Close()
		ended := make(chan error, 2)
		ctx, cancel := context.WithCancel(t.Context())
		for release, cluster := range map[string]*Cluster{"a/rds-autopilot": c, "b/rds-autopilot": other} {
			go func() {
				ended <- cluster.WithClaim(ctx, Claim{Release: release}, func(ctx context.Context) { <-ctx.Done() })
			}()
		}
		time.Sleep(time.Hour)
		if len(ended) != 1 {
			t.Fatalf("%d of two have ended", len(ended))
		}
		if _, claimed := errors.AsType[*ClaimedError](<-ended); !claimed {
			t.Error("the one that ended was not refused")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// While the API server is away, the leader keeps working: its own lease decides whether it leads.
func TestWorkGoesOnWhenTheClaimCannotBeRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cut := newLeases(t).connect(t)
		defer c.Close()
		cut()
		ended, end := startClaim(t, c, Claim{Release: "a/rds-autopilot"})
		time.Sleep(time.Hour)
		if len(ended) > 0 {
			t.Errorf("it ended with %v", <-ended)
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
