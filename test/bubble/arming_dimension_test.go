// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// watches reports whether all rules of a database watch that.
func (f *fleet) watches(db, dimension, value string) bool {
	a := f.autopilot("default", db)
	rules := f.thingsOf(name(a)).rules
	return len(rules) == 3 && !slices.ContainsFunc(rules, func(r simcloud.Rule) bool {
		return !slices.Equal(r.Metric.Dimensions, []simcloud.Dimension{{Name: dimension, Value: value}})
	}) && len(a.Status.Alarms.Rules) == 3 && !slices.ContainsFunc(a.Status.Alarms.Rules, func(r v1alpha1.Rule) bool {
		return r.Dimension != dimension+":"+value
	})
}

// TestRulesWatchThePrimaryNodeWhereTheInstanceHasNoData takes half an hour of the cloud's time.
func TestRulesWatchThePrimaryNodeWhereTheInstanceHasNoData(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{NoInstanceLevelData: true})
		f.runCloud()
		in := f.database("default", "ha", simcloud.Instance{Flavor: "rds.mysql.n1.2xlarge.4.ha", VolumeGB: 100})
		node := map[string]string{}
		for _, n := range in.Nodes {
			node[n.Role] = n.ID
		}
		begin := time.Now()
		s := f.start(flags{sweep: 2 * time.Minute})
		// At first it looks well: the instance's own dimension, and nothing was without data for long.
		f.armedNow("default", "ha")
		if !f.watches("ha", "rds_cluster_id", in.ID) {
			t.Errorf("at first the rules watch %+v", f.thingsOf(name(f.autopilot("default", "ha"))).rules)
		}
		f.until("the rules watch the primary node", func() bool { return f.watches("ha", "rds_instance_id", node["master"]) })
		if after := time.Since(begin); after < 30*time.Minute || after > 40*time.Minute {
			t.Errorf("that took %s", after)
		}
		f.until("its rules have data", func() bool {
			a := f.autopilot("default", "ha")
			return isArmed(a) && a.Status.Alarms.Rules[0].State == v1alpha1.StateOK
		})
		f.whole(t, f.autopilot("default", "ha"))
		f.must(f.sim.ChangeInstance(in.ID, func(i *simcloud.Instance) {
			for n := range i.Nodes {
				i.Nodes[n].Role = map[string]string{"master": "slave", "slave": "master"}[i.Nodes[n].Role]
			}
		}))
		s.swept()
		if !f.watches("ha", "rds_instance_id", node["slave"]) {
			t.Errorf("after a failover the rules watch %+v", f.thingsOf(name(f.autopilot("default", "ha"))).rules)
		}
		f.whole(t, f.armedNow("default", "ha"))
		f.must(f.sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: 93}))
		f.until("an alarm of the node is acted on", func() bool { return f.autopilot("default", "ha").Status.Pending != nil })
		if p := f.autopilot("default", "ha").Status.Pending; p.Kind != v1alpha1.KindVolume || p.To != "110" {
			t.Errorf("pending is %+v", p)
		}
		f.expectMended(t, "ha", "")
		s.stop()
	})
}
