// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simoperator "github.com/mcsps/rds-autopilot/test/sim/operator"
)

// TestGrowthUnderUndocumentedCloudBehaviour tries what the cloud's documents leave open, either way, beside the stand-in for the archived operator.
func TestGrowthUnderUndocumentedCloudBehaviour(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.runCloud()
		const at = "unknowns"
		f.namespace(at)
		f.operator()
		s := f.start(flags{sweep: 2 * time.Minute})
		defer s.stop()
		armed := func(name string, volumeGB int) simcloud.Instance {
			in := f.database(at, name, simcloud.Instance{Flavor: "rds.mysql.n1.large.4", VolumeGB: volumeGB, Workload: simcloud.Workload{UsedGB: 10}})
			f.armedNow(at, name)
			return in
		}
		// grown waits until the volume was grown to that size by us, and some sweeps more, in which nothing else may happen.
		grown := func(t *testing.T, name string, to int64) {
			t.Helper()
			f.until("the volume has grown", func() bool { return f.volume(at, name) >= to && f.autopilot(at, name).Status.Pending == nil })
			f.sweeps(s, 3)
			if v := f.volume(at, name); v != to {
				t.Errorf("spec.volumesize is %d, want %d and no second step", v, to)
			}
		}

		for name, state := range map[string]simcloud.RuleState{"keeps": "", "ok": "ok", "nodata": "insufficient_data"} {
			step(t, "a rewritten rule: "+name, func(t *testing.T) {
				f.sim.Configure(func(s *simcloud.Settings) { s.RewrittenRule = state })
				in := armed("rewritten-"+name, 40)
				f.must(f.sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: 31}))
				grown(t, in.Name, 50)
				f.must(f.sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: 42}))
				grown(t, in.Name, 70) // the step doubles
				if n := f.changes(at, in.Name, v1alpha1.ByAutopilot); n != 2 {
					t.Errorf("%d changes of ours, want 2", n)
				}
			})
		}
		f.sim.Configure(func(s *simcloud.Settings) { s.RewrittenRule = "" })

		for name, tc := range map[string]struct {
			hidden bool
			says   string
		}{"shown": {false, "StorageFull"}, "hidden": {true, "Stalled"}} {
			step(t, "enlarging is refused in STORAGE FULL, "+name+" in the list", func(t *testing.T) {
				f.sim.Configure(func(s *simcloud.Settings) { s.RefuseEnlargeWhenFull, s.HideStorageFull = true, tc.hidden })
				in := armed("full-"+name, 100)
				f.must(f.sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: 99}))
				f.until("it is said loudly", func() bool { return f.decided(at, in.Name, tc.says) })
				if v := f.volume(at, in.Name); v != 120 {
					t.Errorf("spec.volumesize is %d, want one step to 120", v)
				}
				if got, _ := f.sim.Instance(in.ID); got.VolumeGB != 100 {
					t.Fatalf("the cloud took %d GB, want it to refuse", got.VolumeGB)
				}
				f.must(f.sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: 60})) // somebody made room
				grown(t, in.Name, 120)
				if !f.completed(at, in.Name, "120") || f.changes(at, in.Name, v1alpha1.ByAutopilot) != 1 {
					t.Errorf("changes %+v", f.autopilot(at, in.Name).Status.Changes)
				}
			})
		}
		f.sim.Configure(func(s *simcloud.Settings) { s.RefuseEnlargeWhenFull, s.HideStorageFull = false, false })

		step(t, "no resize list: the same family only", func(t *testing.T) {
			f.sim.Configure(func(s *simcloud.Settings) { s.NoResizeList = true })
			in := armed("families", 100)
			f.patch(f.raps(at), in.Name, `{"spec":{"flavor":{"cooldownSeconds":0,"maxVCPUs":64,"maxMemoryGB":256}}}`)
			all, err := f.person().Flavors(t.Context(), in.Engine, in.Version)
			f.must(err)
			for _, l := range all {
				if flavors.Family(l.Code) == "n1" && l.VCPUs > in.VCPUs && l.Mode == "single" {
					f.sim.SetFlavorStatus(l.Code, "eu-de-01", simcloud.FlavorSoldOut)
				}
			}
			f.must(f.sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: 10, CPUDemand: 1.95}))
			f.until("it says sold out", func() bool { return f.decided(at, in.Name, "SoldOut") })
			f.sim.Configure(func(s *simcloud.Settings) { s.NoResizeList = false })
			f.until("another family is taken once there is a list", func() bool { return f.changes(at, in.Name, v1alpha1.ByAutopilot) == 1 })
			if got, _ := f.sim.Instance(in.ID); flavors.Family(got.Flavor) == "n1" || got.VCPUs <= in.VCPUs {
				t.Errorf("it has become %s", got.Flavor)
			}
			if slices.ContainsFunc(f.autopilot(at, in.Name).Status.Changes, func(c v1alpha1.Change) bool { return c.Outcome == v1alpha1.OutcomeLost }) {
				t.Errorf("changes %+v", f.autopilot(at, in.Name).Status.Changes)
			}
		})
	})
}

// operator runs the stand-in for the archived operator on this cluster.
func (f *fleet) operator() {
	f.t.Helper()
	cloud, err := simoperator.Connect(f.sim.Env(), f.sim)
	f.must(err)
	op, err := simoperator.New(simoperator.Options{Config: f.kube.Config(), Cloud: cloud, Resync: time.Minute, Retry: 30 * time.Second})
	f.must(err)
	ctx, stop := context.WithCancel(f.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = op.Run(ctx) }()
	f.t.Cleanup(func() { stop(); <-done })
}

// sweeps waits for that many more of them.
func (f *fleet) sweeps(s *service, n int) {
	f.t.Helper()
	for range n {
		was := s.metric("rds_autopilot_last_sweep_timestamp_seconds")
		f.until("the next sweep", func() bool { return s.metric("rds_autopilot_last_sweep_timestamp_seconds") > was })
	}
}
