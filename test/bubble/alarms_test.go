// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"net/http"
	"strings"
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

// In the swarm, no RdsAutopilot is created by the service, and no Rds lacks its instance.
func TestAlarmsAreCreatedMovedAndRemovedWithTheRds(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		f.start(flags{}).waitIdle() // the next sweep is hours away

		step(t, "the Rds is deleted: each RdsAutopilot stays without rules, and goes on with the next Rds", func(t *testing.T) {
			f.createAutopilot("default", "own", `{"mode":"Recommend"}`)
			in := f.database("default", "own", smallInstance())
			f.database("default", "ours", smallInstance())
			own, ours := f.waitArmed("default", "own"), f.waitArmed("default", "ours")
			for _, a := range []*v1alpha1.RdsAutopilot{own, ours} {
				f.delete(f.rdss("default"), a.Name)
				left := f.waitOff(a.Name, "InstanceUnknown")
				if says := armedCondition(left).Message; left.UID != a.UID || !strings.Contains(says, "Delete this RdsAutopilot, or make") {
					t.Errorf("the RdsAutopilot %s was replaced, or says %q", a.Name, says)
				}
			}
			f.createRds("default", "own", rdsSpec(in, nil), in.ID)
			f.checkAlarms(f.waitArmed("default", "own"))
		})

		step(t, "the operator sets status.id later, and then another one", func(t *testing.T) {
			in, next := f.addInstance(smallInstance()), f.addInstance(smallInstance())
			f.createRds("default", "early", rdsSpec(in, true), "")
			if a := f.waitNotArmed("default", "early", "InstanceUnknown"); !strings.Contains(armedCondition(a).Message, "status.id") {
				t.Errorf("%q", armedCondition(a).Message)
			}
			for _, id := range []string{in.ID, next.ID} {
				f.patch(f.rdss("default"), "early", `{"status":{"id":"`+id+`"}}`)
				f.waitUntil("the rules watch "+id, func() bool {
					rules := f.rulesOf("default", "early")
					for _, r := range rules {
						if r.Metric.Dimensions[0].Value != id {
							return false
						}
					}
					return len(rules) == 3
				})
			}
			f.checkAlarms(f.waitArmed("default", "early"))
		})

		step(t, "the cloud does not delete the rules: the service repeats it, and nothing waits", func(t *testing.T) {
			clear := f.setFault(faultOf(simcloud.Fault{Status: http.StatusServiceUnavailable}, "DeleteAlarm"))
			f.patch(f.rdss("default"), "early", `{"spec":{"autopilot":false}}`)
			f.delete(f.raps("default"), "own")
			if f.autopilot("default", "own") != nil {
				t.Error("the deletion waits for the service")
			}
			a := f.waitNotArmed("default", "early", "CloudUnreachable")
			if message := armedCondition(a).Message; !strings.Contains(message, "503") {
				t.Errorf("early: %q", message)
			}
			requests := f.sim.Count("ces", "DeleteAlarm")
			f.waitUntil("the removal is repeated", func() bool { return f.sim.Count("ces", "DeleteAlarm") > requests+8 })
			clear()
			f.waitRemoved("default", "own")
		})
		f.waitOff("early", "NotEnabled")
		f.checkEmpty()
	})
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

// What was deleted or turned off while no process ran is removed by the first sweep, in every way to delete it. With --mode
// Off, nothing is left at all.
func TestSweepRemovesWhatNobodyWants(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		team := f.namespace("team")
		ways := map[string]func(string){
			"rds-deleted":  func(db string) { f.delete(f.rdss(team), db) },
			"rap-deleted":  func(db string) { f.patch(f.rdss(team), db, `{"spec":{"autopilot":null}}`); f.delete(f.raps(team), db) },
			"both-deleted": func(db string) { f.delete(f.rdss(team), db); f.delete(f.raps(team), db) },
			"switched-off": func(db string) { f.patch(f.rdss(team), db, `{"spec":{"autopilot":false}}`) },
			"no-status":    func(db string) { f.patch(f.raps(team), db, `{"spec":{"mode":"Off"}}`); f.replaceStatus(team, db) },
		}
		first := f.start(flags{})
		for db := range ways {
			f.database(team, db, smallInstance())
			f.waitArmed(team, db)
		}
		f.database("default", "kept", smallInstance())
		f.waitArmed("default", "kept")
		first.stop()
		for db, remove := range ways {
			remove(db)
		}
		f.replaceStatus("default", "kept")
		second := f.start(flags{})
		second.waitIdle()
		for db := range ways {
			f.waitRemoved(team, db)
		}
		f.checkAlarms(f.waitArmed("default", "kept"))
		second.stop()

		off := f.start(flags{mode: v1alpha1.ModeOff})
		f.waitOff("kept", "NotEnabled")
		f.checkEmpty()
		f.database("default", "new", smallInstance())
		off.waitIdle()
		off.stop()
		if a := f.autopilot("default", "new"); a != nil {
			t.Errorf("--mode=Off created the RdsAutopilot %s", a.Name)
		}
		f.start(flags{})
		for _, db := range []string{"kept", "new"} {
			f.checkAlarms(f.waitArmed("default", db))
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

// Whatever happens to the topic or a rule, alarms are acted on by the sweep, and it is repaired. Package alarms tests every
// kind of drift.
func TestTopicAndRulesAreRepairedAndAlarmsAreActedOnMeanwhile(t *testing.T) {
	refuse := func(f *fleet, status int) func() {
		f.sim.RemoveTopic(f.topic()["topicURN"])
		return f.setFault(faultOf(simcloud.Fault{Status: status}, "CreateTopic"))
	}
	for name, tc := range map[string]struct {
		breakIt func(f *fleet) (repair func()) // nil: it is repaired without a person
		reason  string                         // why it is not armed meanwhile
		event   string                         // of the repair
	}{
		"topic deleted": {func(f *fleet) func() { f.sim.RemoveTopic(f.topic()["topicURN"]); return nil }, "", ""},
		"subscription canceled": {func(f *fleet) func() { f.sim.Unsubscribe(f.sim.Subscriptions()[0].URN); return nil },
			"", ""},
		"SMN refuses": {func(f *fleet) func() { return refuse(f, http.StatusForbidden) }, "SubscriptionRefused", ""},
		"SMN is down": {func(f *fleet) func() { return refuse(f, http.StatusServiceUnavailable) }, "SubscriptionPending", ""},
		"rule disabled": {func(f *fleet) func() {
			f.must(f.personClient().EnableRule(f.t.Context(), f.rulesOf("default", "db")[v1alpha1.MetricStorage].ID, false))
			return nil
		}, "", "The storage rule was restored"},
		"rule deleted": {func(f *fleet) func() {
			f.sim.RemoveRule(f.rulesOf("default", "db")[v1alpha1.MetricMemory].ID)
			return nil
		}, "", "The memory rule was restored"},
	} {
		t.Run(name, func(t *testing.T) {
			inFleet(t, simcloud.Settings{}, func(f *fleet) {
				in := f.database("default", "db", smallInstance())
				s := f.start(flags{sweep: 2 * time.Minute})
				f.waitArmed("default", "db")
				repair := tc.breakIt(f)
				if tc.reason != "" {
					f.waitNotArmed("default", "db", tc.reason)
					if n := s.metric("rds_autopilot_subscription_confirmed"); n != 0 {
						t.Errorf("the gauge is %g", n)
					}
				}
				f.uses(in.ID, 93)
				f.waitUntil("the volume grows", func() bool { return f.requested("db").volumeGB == 110 })
				if repair != nil {
					repair()
				}
				s.waitSweep()
				f.waitUntil("the subscription is confirmed again", func() bool {
					return f.topic()["subscription"] == "Confirmed" && s.metric("rds_autopilot_subscription_confirmed") == 1
				})
				f.checkAlarms(f.waitArmed("default", "db"))
				events := f.events("default", "db", "Repaired") // one on each object
				if tc.event != "" && len(events) == 0 {
					t.Error("the repair is not reported")
				}
				for _, e := range events {
					if tc.event == "" || !strings.HasPrefix(e.Note, tc.event) || e.Series != nil {
						t.Errorf("event on the %s: %q, series %+v; want %q once", e.Regarding.Kind, e.Note, e.Series, tc.event)
					}
				}
			})
		})
	}
}
