// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// watches reports whether all rules of a database watch that.
func (f *fleet) watches(db, dimension, value string) bool {
	a := f.autopilot("default", db)
	rules := f.thingsOf(name(a)).rules
	return len(rules) == 3 && !slices.ContainsFunc(rules, func(r otcsim.Rule) bool {
		return !slices.Equal(r.Metric.Dimensions, []otcsim.Dimension{{Name: dimension, Value: value}})
	}) && len(a.Status.Alarms.Rules) == 3 && !slices.ContainsFunc(a.Status.Alarms.Rules, func(r v1alpha1.Rule) bool {
		return r.Dimension != dimension+":"+value
	})
}

func TestEachEngineHasItsDimensionAndABuildingInstanceWaits(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, otcsim.Settings{})
		f.runCloud()
		dimensions := map[string]string{"rds.mysql.n1.large.4": "rds_cluster_id", "rds.pg.n1.large.4": "postgresql_cluster_id", "rds.mssql.n1.large.4": "rds_cluster_sqlserver_id"}
		ids := map[string]string{}
		db := func(flavor string) string { return strings.Split(flavor, ".")[1] }
		for flavor := range dimensions {
			ids[flavor] = f.database("default", db(flavor), otcsim.Instance{Flavor: flavor, VolumeGB: 100}).ID
		}
		building := f.database("default", "building", otcsim.Instance{Flavor: small, VolumeGB: 100, Status: "BUILD"})
		s := f.start(flags{}) // no sweep is needed
		for flavor, dimension := range dimensions {
			f.whole(t, f.armedNow("default", db(flavor)))
			if !f.watches(db(flavor), dimension, ids[flavor]) {
				t.Errorf("%s: the rules watch %+v", flavor, f.thingsOf(name(f.autopilot("default", db(flavor)))).rules)
			}
			f.until("its rules have data", func() bool {
				rules := f.thingsOf(name(f.autopilot("default", db(flavor)))).rules
				return !slices.ContainsFunc(rules, func(r otcsim.Rule) bool { return r.State != otcsim.StateOK })
			})
		}
		a := f.says("default", "building", false, "InstanceUnknown")
		if n := f.thingsOf(name(a)).count(); n > 0 || !strings.Contains(armedCondition(a).Message, "BUILD") {
			t.Errorf("%q, %d things in the cloud", armedCondition(a).Message, n)
		}
		f.must(f.sim.ChangeInstance(building.ID, func(i *otcsim.Instance) { i.Status = otcsim.StatusActive }))
		f.whole(t, f.armedNow("default", "building"))
		s.stop()
	})
}

// What takes half an hour of the cloud's time.
func TestNodesAndPendingSubscriptions(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, otcsim.Settings{NoInstanceLevelData: true})
		f.runCloud()
		in := f.database("default", "ha", otcsim.Instance{Flavor: "rds.mysql.n1.2xlarge.4.ha", VolumeGB: 100})
		node := map[string]string{}
		for _, n := range in.Nodes {
			node[n.Role] = n.ID
		}
		f.database("default", "unconfirmed", plain())
		begin := time.Now()
		mend := f.breaks(func(r *http.Request) *otcsim.Fault {
			if _, operation := otcsim.OperationOf(r); operation == "Confirm" && strings.Contains(r.URL.RawQuery, "_unconfirmed_") {
				return &otcsim.Fault{Status: http.StatusBadRequest}
			}
			return nil
		})
		s := f.start(flags{sweep: 2 * time.Minute})
		// At first it looks well: the instance's own dimension, and nothing was without data for long.
		f.armedNow("default", "ha")
		if !f.watches("ha", "rds_cluster_id", in.ID) {
			t.Errorf("at first the rules watch %+v", f.thingsOf(name(f.autopilot("default", "ha"))).rules)
		}
		f.until("the subscription is asked for", func() bool { return f.sim.Count("console", "Confirm") > 0 })
		f.says("default", "unconfirmed", false, "SubscriptionPending")
		asked := func() int {
			n := 0
			for _, r := range f.sim.Requests() {
				if r.Operation == "Subscribe" && strings.Contains(r.URI, "_unconfirmed_") {
					n++
				}
			}
			return n
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
		f.until("the subscription is asked for again", func() bool { return asked() > 1 })
		if after := time.Since(begin); after < 30*time.Minute || after > 40*time.Minute || asked() > 2 {
			t.Errorf("that took %s, and was asked for %d times", after, asked())
		}
		mend()

		f.must(f.sim.ChangeInstance(in.ID, func(i *otcsim.Instance) {
			for n := range i.Nodes {
				i.Nodes[n].Role = map[string]string{"master": "slave", "slave": "master"}[i.Nodes[n].Role]
			}
		}))
		s.swept()
		if !f.watches("ha", "rds_instance_id", node["slave"]) {
			t.Errorf("after a failover the rules watch %+v", f.thingsOf(name(f.autopilot("default", "ha"))).rules)
		}
		f.whole(t, f.armedNow("default", "ha"))
		f.must(f.sim.SetWorkload(in.ID, otcsim.Workload{UsedGB: 93}))
		f.until("an alarm of the node is acted on", func() bool { return f.autopilot("default", "ha").Status.Pending != nil })
		if p := f.autopilot("default", "ha").Status.Pending; p.Kind != v1alpha1.KindVolume || p.To != "110" {
			t.Errorf("pending is %+v", p)
		}
		f.expectMended(t, "ha", "")
		s.stop()
	})
}
