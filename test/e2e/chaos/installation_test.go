// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
	"github.com/mcsps/rds-autopilot/test/world/faults"
)

// shared holds what the worlds of these tests share.
var shared world.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// installation is a world with one database, and the processes of the service.
type installation struct {
	*world.DB
	t        *testing.T
	world    *world.World
	dropping atomic.Bool // every notification is lost

	mu    sync.Mutex
	sizes []int32 // values of spec.volumesize
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	level.Long(t)
	t.Parallel()
	h := &installation{t: t}
	h.world = shared.Start(t, world.Options{Resync: 5 * time.Second, Cloud: simcloud.Options{DeliveryFault: func(d simcloud.Delivery) simcloud.DeliveryFault {
		return simcloud.DeliveryFault{Drop: h.dropping.Load() && d.Type == simcloud.TypeNotification}
	}}})
	h.DB = h.world.MustAdd(t, world.Database{Name: "db", Flavor: "rds.mysql.n1.large.4", VolumeGB: 40, Workload: simcloud.Workload{UsedGB: 10}})
	// Created here, because the operator drops spec.autopilot before the service has started.
	if err := h.CreateAutopilot(h.within(), "{}"); err != nil {
		t.Fatal(err)
	}
	watching, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	go h.WatchRds(watching, func(r *otcv1.Rds) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if n := len(h.sizes); n == 0 || h.sizes[n-1] != r.Spec.VolumeSize {
			h.sizes = append(h.sizes, r.Spec.VolumeSize)
		}
	})
	return h
}

func (h *installation) within() context.Context { return world.Within(h.t) }

// serve starts a process without leader election, because a killed leader would keep its lease for 15 seconds.
func (h *installation) serve(flags ...string) *world.Process {
	h.t.Helper()
	p, err := h.world.Serve(h.within(), append([]string{"--leader-elect=false"}, flags...)...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = p.Kill() // never fails
		if h.t.Failed() {
			for _, l := range p.Lines() {
				h.t.Log(l.Raw)
			}
		}
	})
	return p
}

// proxied starts a process whose requests to the API server pass these hooks.
func (h *installation) proxied(hooks faults.Hooks) *world.Process {
	h.t.Helper()
	proxy, err := faults.NewProxy(h.world.ServiceConfig(), hooks)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = proxy.Close() })
	file := h.t.TempDir() + "/kubeconfig"
	if err := proxy.WriteKubeconfig(file); err != nil {
		h.t.Fatal(err)
	}
	return h.serve("--kubeconfig", file)
}

// grownOnce waits for the end of the alarm. It fails unless there was one change, from 40 to 50 GB, and the cloud has one topic,
// one subscription and three rules.
func (h *installation) grownOnce() {
	h.t.Helper()
	a, err := h.WaitAutopilot(h.within(), "the change is completed and the alarm is over", func(a *v1alpha1.RdsAutopilot) bool {
		for _, r := range a.Status.Alarms.Rules {
			if r.Metric == v1alpha1.MetricStorage && (r.State != v1alpha1.StateOK || r.ThresholdPercent != 77) {
				return false
			}
		}
		return len(a.Status.Changes) > 0 && a.Status.Pending == nil && world.Armed(a)
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if ch := a.Status.Changes; len(ch) != 1 || ch[0].From != "40" || ch[0].To != "50" || ch[0].By != v1alpha1.ByAutopilot || ch[0].Outcome != v1alpha1.OutcomeCompleted {
		h.t.Errorf("changes %+v, want one to 50", ch)
	}
	if in := h.Instance(); in.VolumeGB != 50 {
		h.t.Errorf("the cloud has %d GB", in.VolumeGB)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sizes) != 2 || h.sizes[0] != 40 || h.sizes[1] != 50 {
		h.t.Errorf("spec.volumesize was %v, want 40 and then 50", h.sizes)
	}
	topics, rules := len(h.world.Cloud.Topics()), len(h.world.Cloud.Rules())
	subscriptions := count(h.world.Cloud.Subscriptions(), func(x simcloud.Subscription) bool { return x.Status == simcloud.Confirmed })
	if topics != 1 || subscriptions != 1 || rules != 3 {
		h.t.Errorf("%d topics, %d confirmed subscriptions, %d rules, want 1, 1, 3", topics, subscriptions, rules)
	}
}
