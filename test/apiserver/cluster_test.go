// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

var shared apiserver.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func TestReportsThePinnedVersion(t *testing.T) {
	t.Parallel()
	client, err := discovery.NewDiscoveryClientForConfig(shared.Cluster(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("servers/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "\tk8s.io/kubernetes "+info.GitVersion+" ") || info.Major != "1" || info.Minor == "" {
		t.Errorf("the server reports %s (%s.%s), which servers/go.mod does not pin", info.GitVersion, info.Major, info.Minor)
	}
}

// eventually repeats try for at most five minutes.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within five minutes: %v", what, err)
		case <-tick.C:
		}
	}
}
