// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
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

// addStrangers adds topics and rules of others with names and descriptions like ours, and returns a function that fails
// unless they are as they were.
func (f *fleet) addStrangers() (check func()) {
	f.t.Helper()
	person, own := f.personClient(), f.mark("default", "db")
	for i := range 44 {
		_, err := person.CreateTopic(f.t.Context(), fmt.Sprintf("rds-autopilot_%08x", i), own.String())
		f.must(err)
	}
	in := f.addInstance(smallInstance())
	for i := range 55 {
		name, description := own.RuleName(v1alpha1.MetricCPU), "rds-autopilot default/db" // no readable mark
		switch i % 3 {
		case 1: // a copy
			name, description = fmt.Sprintf("%s-copy-%d", own.RuleName(v1alpha1.MetricStorage), i), own.String()
		case 2:
			other := alarms.Mark{Namespace: "default", Name: "db", Cluster: fmt.Sprintf("00000000-0000-4000-8000-%012x", i)}
			name, description = other.RuleName(v1alpha1.MetricStorage), other.String()
		}
		if i%3 == 0 {
			name = fmt.Sprintf("autopilot_default_db_%08x_storage", i)
		}
		_, err := person.CreateRule(f.t.Context(), strangersRule(name, description, in.ID))
		f.must(err)
	}
	before := f.foreign()
	return func() {
		f.t.Helper()
		if after := f.foreign(); after != before {
			f.t.Errorf("of strangers there was:\n%s\nand is:\n%s", before, after)
		}
	}
}

// foreign returns a text of all topics and rules that are not of this cluster's databases.
func (f *fleet) foreign() string {
	var all []string
	for _, t := range f.sim.Topics() {
		if t.Name != alarms.TopicName(f.clusterID(), ownNamespace) {
			all = append(all, fmt.Sprint(t))
		}
	}
	for _, r := range f.sim.Rules() {
		mark, ok := alarms.ParseMark(r.Description)
		if !ok || mark.Cluster != f.clusterID() || strings.Contains(r.Name, "-copy-") {
			all = append(all, fmt.Sprint(r.ID, r.Name, r.Description, r.Condition))
		}
	}
	return strings.Join(all, "\n")
}

// checkEmpty fails unless the cloud has nothing of ours.
func (f *fleet) checkEmpty() {
	f.t.Helper()
	f.waitUntil("the topic is removed", func() bool { return f.topic() == nil })
	for _, t := range f.sim.Topics() {
		if t.Name == alarms.TopicName(f.clusterID(), ownNamespace) {
			f.t.Errorf("the topic %s is left", t.Name)
		}
	}
	for _, r := range f.sim.Rules() {
		if mark, ok := alarms.ParseMark(r.Description); ok && mark.Cluster == f.clusterID() && !strings.Contains(r.Name, "-copy-") {
			f.t.Errorf("the rule %s is left", r.Name)
		}
	}
}

// checkRepaired fails unless the repair was reported once, and no other repair.
func (f *fleet) checkRepaired(db, note string) {
	f.t.Helper()
	f.waitUntil("the event is written", func() bool { return len(f.events("default", db, "Repaired")) > 0 })
	for _, e := range f.events("default", db, "Repaired") {
		if !strings.HasPrefix(e.Note, note) || e.Series != nil || e.Type != corev1.EventTypeNormal {
			f.t.Errorf("event on the %s: %q, series %+v; want %q once", e.Regarding.Kind, e.Note, e.Series, note)
		}
	}
}

// In the swarm, no RdsAutopilot is created by the service, and no Rds lacks its instance.
func TestAlarmsAreCreatedMovedAndRemovedWithTheRds(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		checkStrangers := f.addStrangers()
		f.start(flags{}).waitIdle() // the next sweep is hours away

		step(t, "the Rds is deleted: each RdsAutopilot stays without rules, and goes on with the next Rds", func(t *testing.T) {
			f.createAutopilot("default", "own", `{"mode":"Recommend"}`)
			in := f.database("default", "own", smallInstance())
			f.database("default", "ours", smallInstance())
			own, ours := f.waitArmed("default", "own"), f.waitArmed("default", "ours")
			for _, a := range []*v1alpha1.RdsAutopilot{own, ours} {
				f.delete(f.rdss("default"), a.Name)
				if left := f.waitOff(a.Name, "InstanceUnknown"); left.UID != a.UID {
					t.Errorf("the RdsAutopilot %s was replaced", a.Name)
				}
				if events := f.events("default", a.Name, "Disarmed"); len(events) != 1 {
					t.Errorf("%d events Disarmed about %s", len(events), a.Name)
				}
			}
			f.createRds("default", "own", rdsSpec(in, nil), in.ID)
			f.checkAlarms(f.waitArmed("default", "own"))
		})

		step(t, "the RdsAutopilot is deleted: its rules are removed at once", func(t *testing.T) {
			f.patch(f.rdss("default"), "own", `{"spec":{"autopilot":false}}`)
			f.waitOff("own", "NotEnabled")
			f.patch(f.rdss("default"), "own", `{"spec":{"autopilot":null}}`)
			f.createRds("default", "gone", rdsSpec(f.addInstance(smallInstance()), nil), f.addInstance(smallInstance()).ID)
			f.createAutopilot("default", "gone", `{}`)
			f.waitArmed("default", "gone")
			f.delete(f.raps("default"), "gone")
			f.waitRemoved("default", "gone")
			if f.autopilot("default", "gone") != nil {
				t.Error("the RdsAutopilot is back")
			}
		})

		step(t, "the operator sets status.id later", func(t *testing.T) {
			in := f.addInstance(smallInstance())
			f.createRds("default", "early", rdsSpec(in, true), "")
			a := f.waitNotArmed("default", "early", "InstanceUnknown")
			if n := len(f.rulesOf("default", "early")); n > 0 || !strings.Contains(armedCondition(a).Message, "status.id") {
				t.Errorf("%q, %d rules in the cloud", armedCondition(a).Message, n)
			}
			f.patch(f.rdss("default"), "early", `{"status":{"id":"`+in.ID+`"}}`)
			f.checkAlarms(f.waitArmed("default", "early"))
		})

		step(t, "the Rds names another instance: the rules watch it before a sweep", func(t *testing.T) {
			id := f.addInstance(smallInstance()).ID
			f.patch(f.rdss("default"), "early", `{"status":{"id":"`+id+`"}}`)
			f.waitUntil("the rules watch the other instance", func() bool {
				rules := f.rulesOf("default", "early")
				for _, r := range rules {
					if r.Metric.Dimensions[0].Value != id {
						return false
					}
				}
				return len(rules) == 3
			})
			f.waitArmed("default", "early")
			if events := f.events("default", "early", "Repaired"); len(events) > 0 {
				t.Errorf("our own change is reported as a repair: %s", events[0].Note)
			}
		})

		step(t, "the cloud does not delete the rules: the service repeats it, and nothing waits", func(t *testing.T) {
			f.database("default", "held", smallInstance())
			f.database("default", "deleted", smallInstance())
			f.waitArmed("default", "held")
			f.waitArmed("default", "deleted")
			clear := f.setFault(faultOf(simcloud.Fault{Status: http.StatusServiceUnavailable}, "DeleteAlarm"))
			f.patch(f.rdss("default"), "held", `{"spec":{"autopilot":false}}`)
			f.patch(f.rdss("default"), "deleted", `{"spec":{"autopilot":null}}`)
			time.Sleep(time.Second) // until the cache has it: what is deleted while true is made again
			f.delete(f.raps("default"), "deleted")
			if f.autopilot("default", "deleted") != nil {
				t.Error("the deletion waits for the service")
			}
			a := f.waitNotArmed("default", "held", "CloudUnreachable")
			if message := armedCondition(a).Message; !strings.Contains(message, "503") {
				t.Errorf("held: %q", message)
			}
			requests := f.sim.Count("ces", "DeleteAlarm")
			f.waitUntil("the removal is repeated", func() bool { return f.sim.Count("ces", "DeleteAlarm") > requests+8 })
			clear()
			f.waitRemoved("default", "deleted")
		})
		f.waitOff("held", "NotEnabled")
		f.patch(f.rdss("default"), "early", `{"spec":{"autopilot":false}}`)
		f.waitOff("early", "NotEnabled")
		f.checkEmpty()
		checkStrangers()
	})
}

// Anyone can trigger the operator's own autopilot, which spec.endpoint turns on.
func TestSpecEndpointIsWarnedOfOnceOnBothObjects(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.start(flags{sweep: 5 * time.Minute})
		in := f.addInstance(smallInstance())
		spec := rdsSpec(in, true)
		spec["endpoint"] = "https://example.com/"
		f.createRds("default", "db", spec, in.ID)
		f.waitArmed("default", "db")
		time.Sleep(time.Hour)
		warnings := f.events("default", "db", "OperatorAutopilot")
		if len(warnings) != 2 {
			t.Errorf("%d events, want one on each object", len(warnings))
		}
		for _, e := range warnings {
			if e.Type != corev1.EventTypeWarning || e.Series != nil || !strings.Contains(e.Note, "spec.endpoint") {
				t.Errorf("event on the %s: %+v", e.Regarding.Kind, e)
			}
		}
	})
}

func TestModeOffRemovesAllAlarmsAndTheTopic(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		checkStrangers := f.addStrangers()
		first := f.start(flags{})
		for _, db := range []string{"kept", "deleted"} {
			f.database("default", db, smallInstance())
			f.waitArmed("default", db)
		}
		first.stop()
		f.delete(f.rdss("default"), "deleted") // while no process runs

		off := f.start(flags{mode: v1alpha1.ModeOff})
		f.waitOff("kept", "NotEnabled")
		f.waitOff("deleted", "InstanceUnknown")
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
		checkStrangers()
	})
}

// What was deleted or turned off while no process ran is removed by the first sweep, in every way to delete it.
func TestSweepRemovesWhatNobodyWants(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		checkStrangers := f.addStrangers()
		team := f.namespace("team")
		ways := map[string]func(string){
			"rds-deleted":   func(db string) { f.delete(f.rdss(team), db) },
			"rap-deleted":   func(db string) { f.patch(f.rdss(team), db, `{"spec":{"autopilot":null}}`); f.delete(f.raps(team), db) },
			"both-deleted":  func(db string) { f.delete(f.rdss(team), db); f.delete(f.raps(team), db) },
			"switched-off":  func(db string) { f.patch(f.rdss(team), db, `{"spec":{"autopilot":false}}`) },
			"mode-off":      func(db string) { f.patch(f.raps(team), db, `{"spec":{"mode":"Off"}}`) },
			"off-no-status": func(db string) { f.patch(f.raps(team), db, `{"spec":{"mode":"Off"}}`); f.replaceStatus(team, db) },
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
		f.start(flags{}).waitIdle()
		for db := range ways {
			f.waitRemoved(team, db)
		}
		f.checkAlarms(f.waitArmed("default", "kept"))
		if rules := f.sim.Rules(); len(rules) != 3+55 {
			t.Errorf("%d rules", len(rules))
		}
		checkStrangers()
	})
}

// Two clusters share a tenant, and a namespace is not watched any more.
func TestRulesOfOthersStay(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		a := newFleet(t, simcloud.Settings{})
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
		a.patch(a.rdss("default"), "db", `{"spec":{"autopilot":null}}`)
		a.delete(a.raps("default"), "db")
		a.patch(a.rdss(left), "db", `{"spec":{"autopilot":null}}`)
		a.delete(a.raps(left), "db")
		inB.waitSweep()
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

// Package alarms tests every kind of drift. Here the sweep finds it, and the database has an event.
func TestDriftIsRepairedAndReportedOnce(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		drifts := map[string]struct {
			change func(map[v1alpha1.Metric]simcloud.Rule)
			event  string
		}{
			"rule-disabled": {func(rules map[v1alpha1.Metric]simcloud.Rule) {
				f.must(f.personClient().EnableRule(t.Context(), rules[v1alpha1.MetricStorage].ID, false))
			}, "The storage rule was restored"},
			"rule-deleted": {func(rules map[v1alpha1.Metric]simcloud.Rule) { f.sim.RemoveRule(rules[v1alpha1.MetricMemory].ID) },
				"The memory rule was restored"},
		}
		for db := range drifts {
			f.database("default", db, smallInstance())
		}
		s := f.start(flags{sweep: 4 * time.Minute})
		for db := range drifts {
			f.checkAlarms(f.waitArmed("default", db))
		}
		for db, d := range drifts {
			d.change(f.rulesOf("default", db))
		}
		s.waitSweep()
		s.waitSweep() // repairs nothing
		for db, d := range drifts {
			f.checkAlarms(f.waitArmed("default", db))
			f.checkRepaired(db, d.event)
		}
	})
}

// Whatever happens to the one topic, the rules exist, alarms are acted on by the sweep, and it is repaired.
func TestTopicIsRepairedAndAlarmsAreActedOnMeanwhile(t *testing.T) {
	refuse := func(status int, operations ...string) func(*fleet) func() {
		return func(f *fleet) func() { return f.setFault(faultOf(simcloud.Fault{Status: status}, operations...)) }
	}
	for name, tc := range map[string]struct {
		breakIt func(f *fleet) (repair func()) // nil: it is repaired without a person
		reason  string
	}{
		"deleted": {func(f *fleet) func() { f.sim.RemoveTopic(f.topic()["topicURN"]); return nil }, ""},
		"canceled": {func(f *fleet) func() {
			for _, s := range f.sim.Subscriptions() {
				f.sim.Unsubscribe(s.URN)
			}
			return nil
		}, ""},
		"SMN refuses": {func(f *fleet) func() {
			f.sim.RemoveTopic(f.topic()["topicURN"])
			return refuse(http.StatusForbidden, "CreateTopic")(f)
		}, "SubscriptionRefused"},
		"SMN is down": {func(f *fleet) func() {
			f.sim.RemoveTopic(f.topic()["topicURN"])
			return refuse(http.StatusServiceUnavailable, "CreateTopic")(f)
		}, "SubscriptionPending"},
	} {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				f := newFleet(t, simcloud.Settings{})
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
				f.must(f.sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: 93}))
				f.waitUntil("the volume grows", func() bool { return f.requested("db").volumeGB == 110 })
				if repair != nil {
					repair()
				}
				s.waitSweep()
				f.waitUntil("the subscription is confirmed again", func() bool {
					return f.topic()["subscription"] == "Confirmed" && s.metric("rds_autopilot_subscription_confirmed") == 1
				})
				f.checkAlarms(f.waitArmed("default", "db"))
			})
		})
	}
}

// Armed stays False until the rules have the numbers of the new policy.
func TestPolicyIsWrittenToTheRulesWithoutASweep(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.database("default", "db", smallInstance())
		s := f.start(flags{})
		f.waitArmed("default", "db")
		clear := f.setFault(faultOf(simcloud.Fault{Status: http.StatusForbidden}, "UpdateAlarm"))
		f.patch(f.raps("default"), "db", `{"spec":{"storage":{"alarm":{"count":2}}}}`)
		f.waitNotArmed("default", "db", "CloudUnreachable")
		requests := f.sim.Count("ces", "UpdateAlarm")
		f.waitUntil("the update is repeated", func() bool { return f.sim.Count("ces", "UpdateAlarm") > requests })
		if isArmed(f.autopilot("default", "db")) {
			t.Error("armed with the rule of the former policy")
		}
		clear()
		if c := f.checkAlarms(f.waitArmed("default", "db"))[v1alpha1.MetricStorage].Condition; c.Count != 2 {
			t.Errorf("the rule is %+v", c)
		}
		if n := s.metric("rds_autopilot_sweep_duration_seconds"); n != 1 {
			t.Errorf("%g sweeps, want only the first", n)
		}
		if events := f.events("default", "db", "Repaired"); len(events) > 0 {
			t.Errorf("our own change is reported as a repair: %s", events[0].Note)
		}
	})
}
