// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// waitRemoved waits until a database has no rule in the cloud.
func (f *fleet) waitRemoved(namespace, name string) {
	f.t.Helper()
	f.waitUntil("the rules of "+name+" are removed", func() bool { return len(f.rulesOf(namespace, name)) == 0 })
}

// waitOff waits until an RdsAutopilot is not armed for this reason, has no rules, and returns it.
func (f *fleet) waitOff(db, reason string) *v1alpha1.RdsAutopilot {
	f.t.Helper()
	f.waitRemoved("default", db)
	a := f.waitNotArmed("default", db, reason)
	if len(a.Status.Alarms.Rules) > 0 {
		f.t.Errorf("%s has the status %+v", db, a.Status.Alarms)
	}
	return a
}

// checkEmpty fails unless the cloud has nothing of this cluster.
func (f *fleet) checkEmpty() {
	f.t.Helper()
	f.waitUntil("the topic is removed", func() bool { return f.topic() == nil })
	for _, t := range f.sim.Topics() {
		if t.Name == alarms.TopicName(f.clusterID(), ownNamespace) {
			f.t.Errorf("the topic %s is left", t.Name)
		}
	}
	for _, r := range f.sim.Rules() {
		if mark, ok := alarms.ParseMark(r.Description); ok && mark.Cluster == f.clusterID() {
			f.t.Errorf("the rule %s is left", r.Name)
		}
	}
}

// Anyone can trigger the operator's own autopilot, which spec.endpoint turns on.
func TestSpecEndpointIsWarnedOfOnceOnBothObjects(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		f.start(often)
		in := f.addInstance(smallInstance())
		spec := rdsSpec(in, true)
		spec["endpoint"] = "https://example.com/"
		f.createRds("default", "db", spec, in.ID)
		time.Sleep(time.Hour)
		warnings := f.events("default", "db", "OperatorAutopilot")
		if len(warnings) != 2 || warnings[0].Series != nil || warnings[1].Series != nil {
			t.Errorf("%d events, want one on each object: %+v", len(warnings), warnings)
		}
	})
}

// Two clusters share a tenant, and a namespace is not watched any more.
func TestRulesOfOthersStay(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(a *fleet) {
		b := a.addCluster()
		left := a.namespace("left")
		a.database("default", "db", smallInstance())
		a.database(left, "db", smallInstance())
		b.database("default", "db", smallInstance())
		inA, inB := a.start(flags{}), b.start(flags{sweep: 2 * time.Minute})
		a.waitArmed("default", "db")
		a.waitArmed(left, "db")
		b.waitArmed("default", "db")
		inA.stop()
		for _, namespace := range []string{"default", left} {
			a.delete(a.rdss(namespace), "db")
			a.delete(a.raps(namespace), "db")
		}
		inB.waitSweep()
		if len(a.rulesOf("default", "db")) != 3 {
			t.Error("the other cluster has removed rules that are not its own")
		}
		narrow := a.start(flags{sweep: 2 * time.Minute, namespaces: []string{"default"}})
		a.waitRemoved("default", "db")
		narrow.waitSweep()
		if len(a.rulesOf(left, "db")) != 3 {
			t.Error("rules of a namespace that is not watched are removed")
		}
		narrow.stop()
		a.start(flags{})
		a.waitRemoved(left, "db")
		a.checkEmpty()
		b.checkAlarms(b.waitArmed("default", "db"))
	})
}
