// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// CPU is short on Wednesday and no longer on Saturday, when the window opens: the wish is kept and served.
func TestAnAlarmOnWednesdayIsServedInSaturdaysWindow(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, otcsim.Settings{})
		f.skip(time.Wednesday, 12*time.Hour)
		f.runCloud()
		const at, name = "window", "noon"
		f.namespace(at)
		in := f.database(at, name, otcsim.Instance{Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: otcsim.Workload{UsedGB: 10}})
		s := f.start(flags{sweep: 2 * time.Minute})
		defer func() { s.stop() }()
		f.armedNow(at, name)
		f.patch(f.raps(at), name, `{"spec":{"flavor":{"cooldownSeconds":0,"window":{"days":["Sat","Sun"],"start":"01:00","end":"23:00","timeZone":"UTC"}}}}`)
		f.operate(at)

		f.must(f.sim.SetWorkload(in.ID, otcsim.Workload{UsedGB: 10, CPUDemand: 1.95}))
		f.until("it waits for the window", func() bool { return f.decided(at, name, "OutsideWindow") })
		f.must(f.sim.SetWorkload(in.ID, otcsim.Workload{UsedGB: 10, CPUDemand: 0.2}))
		f.until("the alarm is over", func() bool {
			return slices.ContainsFunc(f.autopilot(at, name).Status.Alarms.Rules, func(r v1alpha1.Rule) bool {
				return r.Metric == v1alpha1.MetricCPU && r.State == v1alpha1.StateOK
			})
		})
		if d := f.autopilot(at, name).Status.Deferred; d == nil {
			t.Fatal("the wish is forgotten")
		}
		s.stop()
		f.skip(time.Saturday, 2*time.Hour)
		s = f.start(flags{sweep: 2 * time.Minute}) // another leader: the wish is in the status
		f.until("it is served", func() bool { return f.completed(at, name, "rds.mysql.n1.xlarge.2") })
		if day := time.Now().UTC().Weekday(); day != time.Saturday {
			t.Errorf("it is served on a %s", day)
		}
		f.until("the wish is gone", func() bool { return f.autopilot(at, name).Status.Deferred == nil })
	})
}
