// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

func TestFailedReadIsReportedOnceInReady(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		checkFails := func(what, reason string) {
			t.Helper()
			if err := w.check(c); err == nil {
				t.Errorf("%s: no error, so the round would not be retried", what)
			}
			w.checkCondition(what, v1alpha1.ConditionReady, metav1.ConditionFalse, reason)
		}
		w.statesUnreadable = true
		checkFails("states are unreadable", autopilot.ReadFailed)
		w.steps = nil
		checkFails("states are still unreadable", autopilot.ReadFailed)
		if !w.armed() || len(w.steps) > 0 {
			t.Errorf("armed %t, the second failed check writes %v", w.armed(), w.steps)
		}
		w.statesUnreadable, w.unreachable = false, true
		checkFails("cloud is unreachable", autopilot.CloudUnreachable)
		w.setSwitch(new(false))
		checkFails("alarms cannot be removed", autopilot.CloudUnreachable)
	})
}

// The archived operator drops spec.autopilot before a round reads the Rds. The leader may change within that second.
func TestLastExplicitSwitchIsEffectiveAfterTheFieldIsDropped(t *testing.T) {
	on, off := new(true), new(false)
	for _, tc := range []struct {
		first  *bool
		values []*bool
		armed  bool
	}{
		{nil, []*bool{on, nil}, true},
		{on, []*bool{off, nil}, false},
		{on, []*bool{off, on, nil}, true},
		{off, []*bool{on, off, nil}, false},
	} {
		inBubble(t, fmt.Sprintf("armed %t after %d values", tc.armed, len(tc.values)), func(t *testing.T) {
			w := newWorld(t)
			w.setSwitch(tc.first)
			former, leader := w.process(), w.process()
			w.settle(former)
			for _, value := range tc.values {
				w.setSwitch(value)
			}
			w.settle(leader)
			if w.armed() != tc.armed {
				t.Errorf("armed %t", w.armed())
			}
		})
	}
	inBubble(t, "an event of the RdsAutopilot is late", func(t *testing.T) {
		w := newWorld(t)
		w.setSwitch(on)
		c := w.process()
		w.settle(c)
		former := w.rap()
		w.setSwitch(off)
		w.settle(c)
		w.setSwitch(on)
		w.setSwitch(nil)
		c.AutopilotChanged(former, former)
		w.settle(c)
		if !w.armed() {
			t.Error("the last value was true, and the alarms are not armed")
		}
	})
	inBubble(t, "an event of the leader's own write is late", func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		c.queues = newQueues(c.decideMarks)
		t.Cleanup(c.queues.shutDown)
		var seen []*v1alpha1.RdsAutopilot
		for _, value := range []*bool{on, off, on} {
			w.setSwitch(value)
			w.settle(c)
			seen = append(seen, w.rap())
		}
		w.setSwitch(off)
		w.setSwitch(nil)
		c.AutopilotChanged(seen[0], seen[1])
		w.settle(c)
		if w.armed() {
			t.Error("the last value was false, and the alarms are armed")
		}
	})
	inBubble(t, "RdsAutopilot deleted afterwards", func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(c)
		for _, value := range []*bool{off, on, nil} {
			w.setSwitch(value)
		}
		w.remove(w.raps())
		w.settle(c)
		if w.rap() != nil {
			t.Errorf("created again, although spec.autopilot is absent: %+v", w.rap())
		}
	})
}

func TestArmedNamesTheReasonForMissingAlarms(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, string(autopilot.ReasonInstanceUnknown)
	for name, tc := range map[string]struct {
		alter  func(*world)
		status metav1.ConditionStatus
		reason string
	}{
		"full instance":  {func(w *world) { w.inst.Status = autopilot.StatusStorageFull }, yes, autopilot.ArmedReason},
		"new instance":   {func(w *world) { w.inst.Status = "BUILD" }, no, unknown},
		"unknown engine": {func(w *world) { w.inst.Engine = "Oracle" }, no, unknown},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			tc.alter(w)
			c := w.process()
			for range 3 {
				_ = w.check(c)
			}
			w.checkCondition(name, v1alpha1.ConditionArmed, tc.status, tc.reason)
		})
	}
}

// Without this, Armed would alternate while the cloud is unreachable, and each of its writes would start a round.
func TestInstanceReadBeforeTheCloudBecameUnreachableDoesNotArm(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		w.readBefore = w.now
		w.now = w.now.Add(30 * time.Second)
		if _, err := w.decide(c); err == nil || w.armed() {
			t.Fatalf("armed %t, %v", w.armed(), err)
		}
		w.now = w.now.Add(10 * time.Second)
		if err := w.arm(c); err == nil || w.armed() {
			t.Errorf("armed %t by the former list, %v", w.armed(), err)
		}
		w.readBefore = time.Time{}
		w.settle(c)
		if !w.armed() {
			t.Error("not armed once the cloud answers again")
		}
	})
}

func TestArmingOnOldAutopilotStartsFromStoredAlarms(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		_, _ = w.decide(c) // creates the RdsAutopilot
		w.mustDecide(c)    // stores the instance
		last := w.freezeAutopilots(c)
		w.settle(w.process())
		if last == nil || len(last.Status.Alarms.Rules) > 0 || !w.armed() {
			t.Fatal("the database must be armed, and the old cache must not show it")
		}
		w.steps = nil
		if err := w.arm(c); err != nil || slices.Contains(w.steps, "rules") {
			t.Errorf("steps %v, want no second rules: %v", w.steps, err)
		}
	})
}

// The receiver compares an alarm's instance with the stored one.
func TestRulesAreCreatedAfterADecisionHasStoredTheirInstance(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		_, _ = w.decide(c) // creates the RdsAutopilot
		check := func(want string) {
			t.Helper()
			for range 2 { // before the decision, and after it
				w.must(w.arm(c))
				s := w.rap().Status
				isOther := func(r v1alpha1.Rule) bool { return s.Instance == nil || r.Dimension != "rds_cluster_id:"+s.Instance.ID }
				if slices.ContainsFunc(s.Alarms.Rules, isOther) {
					t.Errorf("the instance is %+v, and the rules are %+v", s.Instance, s.Alarms.Rules)
				}
				w.mustDecide(c)
			}
			if s := w.rap().Status; s.Instance == nil || s.Instance.ID != want || !w.armed() {
				t.Errorf("armed %t, instance %+v, want %s", w.armed(), s.Instance, want)
			}
		}
		check("in01")
		w.withLock(func() { w.inst.ID = "in02" })
		w.setInstance("in02")
		check("in02")
	})
}

// An alarm of a new rule may be in force already.
func TestNewRulesStartADecision(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		addQueues(t, c)
		_, _ = w.decide(c) // creates the RdsAutopilot
		w.mustDecide(c)
		w.must(w.arm(c))
		if !w.armed() || !c.decideMarks.isNews(database) {
			t.Errorf("armed %t, no decision is requested", w.armed())
		}
	})
}

// The watch of the Rds may be behind that of the RdsAutopilot.
func TestAlarmsStayWhenCacheLacksTheRds(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		c.options.Kube = oldTargets{c.options.Kube, nil}
		w.must(w.arm(c))
		if !w.armed() {
			t.Fatal("not armed")
		}
	})
}

// If arming and deciding judged differently, they would enqueue each other until the watch has caught up.
func TestAlarmIsActedOnWhenCacheLacksTheRds(t *testing.T) {
	withAlarm(t, func(t *testing.T, w *world, c *Controller) {
		c.options.Kube = oldTargets{c.options.Kube, nil}
		w.mustDecide(c)
		if w.pending() == nil {
			t.Error("nothing is requested")
		}
	})
}

// Once autopilot is off, no round decides on the alarm, so the reason must be recorded before.
func TestAlarmInForceGetsALastDecisionWhenAutopilotIsTurnedOff(t *testing.T) {
	withAlarm(t, func(t *testing.T, w *world, c *Controller) {
		w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Storage.MaxGB = 100 })
		w.mustDecide(c)
		w.setSwitch(new(false))
		w.settle(c)
		all := w.rap().Status.Decisions
		last := all[0]
		if last.Reason != string(autopilot.ReasonNotEnabled) || last.Metric != v1alpha1.MetricStorage || last.Count != 1 ||
			len(all) != 2 {
			t.Errorf("decisions %+v", all)
		}
		w.checkGone()
	})
}

// Once autopilot is on again, the change counts for cooldown and budget. Meanwhile it keeps its place.
func TestChangeInProgressIsKeptWhileAutopilotIsOff(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newCloudWorld(t)
		c := w.startAlarm(v1alpha1.MetricCPU)
		c.limiter.kube = cachedAutopilots{autopilots: []*v1alpha1.RdsAutopilot{w.rap()}} // its watch is behind
		w.mustDecide(c)
		setMode := func(m v1alpha1.Mode) {
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Mode = m })
			w.settle(c)
		}
		setMode(v1alpha1.ModeOff)
		if w.checkGone(); w.pending() == nil {
			t.Fatal("no pending change")
		}
		if c.limiter.reserve(Key{"other", "db"}, 1, w.now) {
			t.Error("the place of the change is free")
		}
		w.endJobs()
		setMode(v1alpha1.ModeAuto)
		w.checkOneChange()
	})
}
