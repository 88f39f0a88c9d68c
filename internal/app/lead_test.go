// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

// wire is a connection that may be cut.
type wire struct {
	next http.RoundTripper
	off  *atomic.Bool
}

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.off.Load() {
		return nil, syscall.ECONNREFUSED
	}
	return w.next.RoundTrip(r)
}

// inMemory returns a simulated cloud and API server without databases.
func inMemory(t *testing.T) (*simcloud.Cloud, *simkube.Server) {
	t.Helper()
	sim, err := simcloud.Start(simcloud.Options{Local: true})
	if err != nil {
		t.Fatal(err)
	}
	kube, err := simkube.New(simkube.Options{CRDs: []string{"../../deploy/crds/rds.yaml", "../../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	return sim, kube
}

// optionsIn are the options of a process in this cloud.
func optionsIn(sim *simcloud.Cloud) Options {
	o := Defaults()
	o.PublicURL, o.LeaseNamespace, o.Transport, o.Log = &url.URL{Scheme: "https", Host: "a.example"}, "default", sim, zap.NewNop()
	o.ConfirmHosts = []string{sim.ConfirmHost()}
	o.Env = func(name string) string {
		for _, pair := range sim.Env() {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value
			}
		}
		return ""
	}
	return o
}

func TestALeaseThatIsLostIsSoughtAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim, kube := inMemory(t)
		var off atomic.Bool
		config := kube.Config()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return wire{next, &off} })
		o := optionsIn(sim)
		ctx, stop := context.WithCancel(t.Context())
		a, err := New(ctx, config, o)
		if err != nil {
			t.Fatal(err)
		}
		var working sync.WaitGroup
		working.Go(func() { _ = a.kube.Run(ctx) })
		working.Go(func() {
			if err := a.lead(ctx); err != nil {
				t.Errorf("the process would end: %v", err)
			}
		})
		for _, step := range []struct {
			what  string
			off   bool
			leads float64
		}{{"at first", false, 1}, {"without the API server", true, 0}, {"when it is back", false, 1}} {
			off.Store(step.off)
			time.Sleep(time.Minute)
			if got := testutil.ToFloat64(a.leader); got != step.leads {
				t.Errorf("%s: leads %g, want %g", step.what, got, step.leads)
			}
		}
		stop()
		working.Wait()
		time.Sleep(10 * time.Minute) // a reading that nobody waits for any more ends by itself
	})
}

// A second installation over the same namespaces would remove the subscriptions of the first one, and the other way round.
func TestASecondInstallationOverTheSameNamespacesDoesNotStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim, kube := inMemory(t)
		o := optionsIn(sim)
		ctx, stop := context.WithCancel(t.Context())
		a, err := New(ctx, kube.Config(), o)
		if err != nil {
			t.Fatal(err)
		}
		var working sync.WaitGroup
		working.Go(func() { _ = a.kube.Run(ctx) })
		working.Go(func() { _ = a.lead(ctx) })
		time.Sleep(time.Minute)
		second := o
		second.PublicURL, second.LeaseName, second.Namespaces = &url.URL{Scheme: "https", Host: "b.example"}, "second", []string{"default"}
		_, err = New(ctx, kube.Config(), second)
		if err == nil || !strings.Contains(err.Error(), "default/rds-autopilot with --public-url=https://a.example") {
			t.Errorf("the second one starts: %v", err)
		}
		replica, err := New(ctx, kube.Config(), o)
		if err != nil {
			t.Fatalf("a second replica: %v", err)
		}
		replica.kube.Close()
		stop()
		working.Wait()
		time.Sleep(10 * time.Minute)
	})
}
