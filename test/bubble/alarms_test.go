// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// waitRemoved waits until this RdsAutopilot and its alarms are removed.
func (f *fleet) waitRemoved(was *v1alpha1.RdsAutopilot) {
	f.t.Helper()
	f.waitUntil(was.Name+" and its alarms are removed", func() bool {
		a := f.autopilot(was.Namespace, was.Name)
		return (a == nil || a.UID != was.UID) && f.alarmObjectsOf(cloudName(was)).count() == 0
	})
}

// waitReleased waits until an RdsAutopilot has no finalizer and no alarms for this reason, and returns it.
func (f *fleet) waitReleased(db, reason string) *v1alpha1.RdsAutopilot {
	f.t.Helper()
	var a *v1alpha1.RdsAutopilot
	f.waitUntil(db+" has no finalizer", func() bool {
		a = f.autopilot("default", db)
		return a != nil && len(a.Finalizers) == 0 && armedCondition(a).Reason == reason && !isArmed(a)
	})
	if left := f.alarmObjectsOf(cloudName(a)); left.count() > 0 || a.Status.Alarms.TopicURN != "" {
		f.t.Errorf("%s has %+v, and status.alarms is %+v", db, left, a.Status.Alarms)
	}
	return a
}

// checkRepaired fails unless the repair was reported once on each of both objects, and no other repair.
func (f *fleet) checkRepaired(db, note string) {
	f.t.Helper()
	f.waitUntil("the events are written", func() bool { return len(f.events("default", db, "Repaired")) >= 2 })
	events := f.events("default", db, "Repaired")
	for _, e := range events {
		if e.Note != note || e.Series != nil || e.Type != corev1.EventTypeNormal {
			f.t.Errorf("event on the %s: %q, series %+v; want %q once", e.Regarding.Kind, e.Note, e.Series, note)
		}
	}
	if len(events) != 2 {
		f.t.Errorf("%d events about %s, want 2", len(events), db)
	}
}

// In the swarm, no RdsAutopilot is created by the service, no Rds lacks its instance, and nobody abandons alarms.
func TestAlarmsAreCreatedMovedAndRemovedWithTheRds(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.start(flags{}).waitIdle() // the next sweep is hours away

		step(t, "the Rds is deleted: our RdsAutopilot is deleted, and a person's stays", func(t *testing.T) {
			f.database("default", "ours", smallInstance())
			f.createAutopilot("default", "own", `{"mode":"Recommend"}`)
			in := f.database("default", "own", smallInstance())
			ours, own := f.waitArmed("default", "ours"), f.waitArmed("default", "own")
			f.delete(f.rdss("default"), "ours")
			f.delete(f.rdss("default"), "own")
			f.waitRemoved(ours)
			if a := f.waitReleased("own", "InstanceUnknown"); a.UID != own.UID || a.Spec.Mode != v1alpha1.ModeRecommend {
				t.Errorf("the RdsAutopilot of a person is %+v", a)
			}
			f.createRds("default", "own", rdsSpec(in, nil), in.ID)
			f.checkAlarms(f.waitArmed("default", "own"))
		})

		step(t, "the operator sets status.id later", func(t *testing.T) {
			in := f.addInstance(smallInstance())
			f.createRds("default", "early", rdsSpec(in, true), "")
			a := f.waitNotArmed("default", "early", "InstanceUnknown")
			if n := f.alarmObjectsOf(cloudName(a)).count(); n > 0 || !strings.Contains(armedCondition(a).Message, "status.id") {
				t.Errorf("%q, %d objects in the cloud", armedCondition(a).Message, n)
			}
			f.patch(f.rdss("default"), "early", `{"status":{"id":"`+in.ID+`"}}`)
			f.checkAlarms(f.waitArmed("default", "early"))
		})

		step(t, "the Rds names another instance: the rules watch it before a sweep", func(t *testing.T) {
			id := f.addInstance(smallInstance()).ID
			f.patch(f.rdss("default"), "early", `{"status":{"id":"`+id+`"}}`)
			f.waitUntil("the rules watch the other instance", func() bool {
				rules := f.alarmObjectsOf(cloudName(f.autopilot("default", "early"))).rules
				isFormer := func(r simcloud.Rule) bool { return r.Metric.Dimensions[0].Value != id }
				return len(rules) == 3 && !slices.ContainsFunc(rules, isFormer)
			})
			f.waitArmed("default", "early")
			if events := f.events("default", "early", "Repaired"); len(events) > 0 {
				t.Errorf("our own change is reported as a repair: %s", events[0].Note)
			}
		})

		step(t, "the cloud does not delete the topic: the service retries until a person abandons it", func(t *testing.T) {
			f.database("default", "held", smallInstance())
			f.database("default", "abandoned", smallInstance())
			f.waitArmed("default", "held")
			abandoned := f.waitArmed("default", "abandoned")
			defer f.setFault(faultOf(simcloud.Fault{Status: http.StatusServiceUnavailable}, "DeleteTopic"))()
			f.patch(f.rdss("default"), "held", `{"spec":{"autopilot":false}}`)
			f.patch(f.rdss("default"), "abandoned", `{"spec":{"autopilot":null}}`)
			f.delete(f.raps("default"), "abandoned")
			for _, db := range []string{"held", "abandoned"} {
				a := f.waitNotArmed("default", db, "CloudUnreachable")
				message := armedCondition(a).Message
				hasNextStep := strings.Contains(message, v1alpha1.AbandonAnnotation+"=true")
				if !hasNextStep || !strings.Contains(message, "503") || len(a.Finalizers) == 0 {
					t.Errorf("%s: %q, finalizers %v", db, message, a.Finalizers)
				}
			}
			requests := f.sim.Count("smn", "DeleteTopic")
			f.waitUntil("the removal is repeated", func() bool { return f.sim.Count("smn", "DeleteTopic") > requests+8 })
			f.patch(f.raps("default"), "abandoned", `{"metadata":{"annotations":{"`+v1alpha1.AbandonAnnotation+`":"true"}}}`)
			f.waitUntil("the RdsAutopilot is deleted", func() bool { return f.autopilot("default", "abandoned") == nil })
			f.waitUntil("both objects have an event", func() bool { return len(f.events("default", "abandoned", "Abandoned")) == 2 })
			if len(f.alarmObjectsOf(cloudName(abandoned)).topics) != 1 || len(f.autopilot("default", "held").Finalizers) == 0 {
				t.Error("the topic is deleted, or the other database was abandoned as well")
			}
		})
		f.waitReleased("held", "NotEnabled")
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

func TestModeOffRemovesAllAlarmsAndKeepsOtherTopics(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		first := f.start(flags{})
		for _, db := range []string{"kept", "deleted"} {
			f.database("default", db, smallInstance())
			f.waitArmed("default", db)
		}
		_, err := f.personClient().CreateTopic(t.Context(), "autopilot_of_a_person", "")
		f.must(err)
		first.stop()
		f.delete(f.rdss("default"), "deleted") // while no process runs

		off := f.start(flags{mode: v1alpha1.ModeOff})
		f.waitReleased("kept", "NotEnabled")
		f.waitUntil("the RdsAutopilot is deleted", func() bool { return f.autopilot("default", "deleted") == nil })
		topics, subs, rules := f.sim.Topics(), f.sim.Subscriptions(), f.sim.Rules()
		if len(topics) != 1 || len(subs)+len(rules) > 0 {
			t.Errorf("left: %+v, %+v, %+v", topics, subs, rules)
		}
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

func TestRdsRecreatedWhileNoProcessRunsGetsANewAutopilotOnlyIfItIsOn(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		first := f.start(flags{})
		switches, former := map[string]any{"on": true, "absent": nil, "off": false}, map[string]*v1alpha1.RdsAutopilot{}
		for db := range switches {
			f.database("default", db, smallInstance())
			former[db] = f.waitArmed("default", db)
		}
		first.stop()
		for db, on := range switches {
			f.delete(f.rdss("default"), db)
			in := f.addInstance(smallInstance())
			f.createRds("default", db, rdsSpec(in, on), in.ID)
		}
		second := f.start(flags{})
		for _, a := range former {
			f.waitRemoved(a)
		}
		f.checkAlarms(f.waitArmed("default", "on"))
		second.waitIdle()
		if f.autopilot("default", "absent") != nil || f.autopilot("default", "off") != nil {
			t.Error("an Rds that is not on has an RdsAutopilot")
		}
	})
}

// Package alarms tests which names are orphans. Here the service lists the owners, and two clusters share a tenant.
func TestSweepRemovesOrphansOfItsOwnClusterOnly(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		a := newFleet(t, simcloud.Settings{})
		b := a.addCluster()
		a.database("default", "db", smallInstance())
		b.database("default", "db", smallInstance())
		inA, inB := a.start(flags{sweep: 2 * time.Minute}), b.start(flags{sweep: 2 * time.Minute})
		orphaned := a.waitArmed("default", "db")
		b.waitArmed("default", "db")
		inA.waitSweep()
		inB.waitSweep()
		for _, s := range []*service{inA, inB} {
			if n := s.metric("rds_autopilot_foreign_objects"); n != 4 {
				t.Errorf("%g foreign objects, want the topic and the rules of the other cluster", n)
			}
		}

		inA.stop()
		a.patch(a.rdss("default"), "db", `{"spec":{"autopilot":null}}`)
		a.delete(a.raps("default"), "db")
		a.patch(a.raps("default"), "db", `{"metadata":{"finalizers":null}}`) // by force
		inB.waitSweep()
		inB.waitSweep()
		if n := a.alarmObjectsOf(cloudName(orphaned)).count(); n != 5 {
			t.Errorf("the other cluster has left %d of 5 orphans", n)
		}
		a.start(flags{sweep: 2 * time.Minute})
		a.waitRemoved(orphaned)
		b.checkAlarms(b.waitArmed("default", "db"))
	})
}

// The namespace was removed from --watch-namespaces while its databases still had alarms.
func TestObjectsOfANamespaceThatIsNotWatchedAreCounted(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		left := f.namespace("left")
		f.database("default", "db", smallInstance())
		f.database(left, "db", smallInstance())
		for _, tc := range []struct {
			namespaces []string
			want       float64
		}{{[]string{"default", left}, 0}, {[]string{"default"}, 4}} { // a topic and three rules
			s := f.start(flags{sweep: 2 * time.Minute, namespaces: tc.namespaces})
			f.waitArmed("default", "db")
			f.waitArmed(left, "db")
			s.waitSweep()
			if n := s.metric("rds_autopilot_unwatched_objects"); n != tc.want {
				t.Errorf("watching %v: %g objects that are not watched, want %g", tc.namespaces, n, tc.want)
			}
			s.stop()
		}
	})
}

// Package alarms tests every kind of drift. Here the sweep or a message of SMN finds it, and both objects get an event.
func TestDriftIsRepairedAndReportedOnce(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		drifts := map[string]struct {
			change  func(alarmObjects)
			event   string
			isSwept bool
		}{
			"rule-disabled": {func(x alarmObjects) {
				f.must(f.personClient().EnableRule(t.Context(), x.rule(v1alpha1.MetricStorage).ID, false))
			}, "the storage rule was restored", true},
			"rule-deleted": {func(x alarmObjects) { f.sim.RemoveRule(x.rule(v1alpha1.MetricMemory).ID) },
				"the memory rule was restored", true},
			"topic-deleted": {func(x alarmObjects) { f.sim.RemoveTopic(x.topics[0].URN) }, "the topic was restored", true},
			"unsubscribed": {func(x alarmObjects) { f.sim.Unsubscribe(x.subscriptions[0].URN) },
				"the subscription is requested again", false},
		}
		for db := range drifts {
			f.database("default", db, smallInstance())
		}
		s := f.start(flags{sweep: 4 * time.Minute})
		for db := range drifts {
			f.checkAlarms(f.waitArmed("default", db))
		}
		s.waitSweep() // so that the next one is minutes away
		sweeps := s.metric("rds_autopilot_sweep_duration_seconds")
		for _, isSwept := range []bool{false, true} {
			for db, d := range drifts {
				if d.isSwept == isSwept {
					d.change(f.alarmObjectsOf(cloudName(f.autopilot("default", db))))
					if !isSwept {
						f.waitUntil("the repair is reported", func() bool { return len(f.events("default", db, "Repaired")) > 0 })
					}
				}
			}
			if n := s.metric("rds_autopilot_sweep_duration_seconds"); n > sweeps {
				t.Errorf("%g sweeps, want none before the repairs that wait for no sweep", n-sweeps)
			}
		}
		s.waitSweep()
		s.waitSweep() // repairs nothing
		for db, d := range drifts {
			f.checkAlarms(f.waitArmed("default", db))
			f.checkRepaired(db, d.event+". To change the alarms, edit the spec of the RdsAutopilot")
		}
	})
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
		if c := f.checkAlarms(f.waitArmed("default", "db")).rule(v1alpha1.MetricStorage).Condition; c.Count != 2 {
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
