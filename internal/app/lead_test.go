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
	"k8s.io/client-go/rest"

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

// whileLeading starts a process that leads, in a simulated cloud and with an API server without databases, and ends it
// after the test.
func whileLeading(t *testing.T, alter func(*Options, *rest.Config), test func(*testing.T, *App, *simcloud.Cloud)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim, err := simcloud.Start(simcloud.Options{Local: true})
		must(t, err)
		kube, err := simkube.New(simkube.Options{CRDs: []string{"../../deploy/crds/rds.yaml", "../../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"}})
		must(t, err)
		o, config := Defaults(), kube.Config()
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
		alter(&o, config)
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
		test(t, a, sim)
		stop()
		working.Wait()
		time.Sleep(10 * time.Minute) // until reads end that have no caller any more
	})
}

// A restart is a login, and IAM locks an account after a few refused ones. So the service must start and lead with
// credentials that the cloud refuses.
func TestServiceLeadsWhileTheCloudRefusesItsCredentials(t *testing.T) {
	wrong := func(o *Options, _ *rest.Config) {
		right := o.Env
		o.Env = func(name string) string {
			if name == "OS_PASSWORD" {
				return "wrong"
			}
			return right(name)
		}
	}
	whileLeading(t, wrong, func(t *testing.T, a *App, sim *simcloud.Cloud) {
		time.Sleep(time.Minute)
		if leads, logins := testutil.ToFloat64(a.leader), sim.Count("iam", "CreateToken"); leads != 1 || logins != 1 {
			t.Errorf("leads %g after %d logins, want 1 after 1", leads, logins)
		}
	})
}

func TestReplicaCompetesAgainAfterALostLease(t *testing.T) {
	var off atomic.Bool
	cut := func(_ *Options, config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return cuttable{next, &off} })
	}
	whileLeading(t, cut, func(t *testing.T, a *App, _ *simcloud.Cloud) {
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
	})
}
