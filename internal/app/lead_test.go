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

// cuttable is a connection that fails while off is set.
type cuttable struct {
	next http.RoundTripper
	off  *atomic.Bool
}

func (w cuttable) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.off.Load() {
		return nil, syscall.ECONNREFUSED
	}
	return w.next.RoundTrip(r)
}

// must fails the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// inMemory returns a simulated cloud and API server without databases.
func inMemory(t *testing.T) (*simcloud.Cloud, *simkube.Server) {
	t.Helper()
	sim, err := simcloud.Start(simcloud.Options{Local: true})
	must(t, err)
	kube, err := simkube.New(simkube.Options{CRDs: []string{"../../deploy/crds/rds.yaml", "../../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"}})
	must(t, err)
	return sim, kube
}

// optionsIn returns the options of a process in this cloud.
func optionsIn(sim *simcloud.Cloud) Options {
	o := Defaults()
	o.PublicURL, o.LeaseNamespace, o.Transport, o.Log = &url.URL{Scheme: "https", Host: "a.example"}, "default", sim, zap.NewNop()
	o.ConfirmHosts = []string{sim.ConfirmHost()}
	o.Env = environment(sim)
	return o
}

// environment returns a function that looks up the credentials of a simulated cloud.
func environment(sim *simcloud.Cloud) func(string) string {
	return func(name string) string {
		for _, pair := range sim.Env() {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// A restart is a login, and IAM locks an account after a few refused ones. So the service must start and lead with
// credentials that the cloud refuses.
func TestServiceLeadsWhileTheCloudRefusesItsCredentials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim, kube := inMemory(t)
		o := optionsIn(sim)
		o.Env = func(name string) string {
			if name == "OS_PASSWORD" {
				return "wrong"
			}
			return environment(sim)(name)
		}
		ctx, stop := context.WithCancel(t.Context())
		a, err := New(ctx, kube.Config(), o)
		must(t, err)
		var working sync.WaitGroup
		working.Go(func() { _ = a.kube.Run(ctx) })
		working.Go(func() { _ = a.lead(ctx) })
		time.Sleep(time.Minute)
		if leads, logins := testutil.ToFloat64(a.leader), sim.Count("iam", "CreateToken"); leads != 1 || logins != 1 {
			t.Errorf("leads %g after %d logins, want 1 after 1", leads, logins)
		}
		stop()
		working.Wait()
		time.Sleep(10 * time.Minute) // until reads end that have no caller any more
	})
}

func TestReplicaCompetesAgainAfterALostLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim, kube := inMemory(t)
		var off atomic.Bool
		config := kube.Config()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return cuttable{next, &off} })
		o := optionsIn(sim)
		ctx, stop := context.WithCancel(t.Context())
		a, err := New(ctx, config, o)
		must(t, err)
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
		time.Sleep(10 * time.Minute) // until reads end that have no caller any more
	})
}
