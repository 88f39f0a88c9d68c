// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
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

// The watch of the Rds may be behind that of the RdsAutopilot. If arming and deciding judged differently, they would
// enqueue each other until it has caught up.
func TestAlarmsStayAndAreActedOnWhenCacheLacksTheRds(t *testing.T) {
	withAlarm(t, func(t *testing.T, w *world, c *Controller) {
		c.options.Kube = oldTargets{c.options.Kube, nil}
		w.must(w.arm(c))
		if !w.armed() {
			t.Fatal("not armed")
		}
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

// noAutopilots is a cache that does not have the RdsAutopilots yet.
type noAutopilots struct{ Kubernetes }

func (noAutopilots) Autopilot(string, string) (*v1alpha1.RdsAutopilot, bool) { return nil, false }

// unreadable is a cache without RdsAutopilots, and an API server that does not let them be read.
type unreadable struct{ noAutopilots }

func (unreadable) LiveAutopilot(context.Context, string, string) (*v1alpha1.RdsAutopilot, error) {
	return nil, &autopilot.RefusedError{Message: "forbidden"}
}

// A right that is missing is no proof that an object is gone. The next sweep tries again, and no retry before.
func TestRulesOfAnObjectThatMayNotBeReadStay(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		readable := c.options.Kube
		w.remove(w.raps())
		c.options.Kube = unreadable{noAutopilots{readable}}
		if err := w.arm(c); err != nil || len(w.states) == 0 {
			t.Errorf("%v, rules %v", err, w.states)
		}
		c.options.Kube = readable
		if err := w.arm(c); err != nil || len(w.states) > 0 {
			t.Errorf("readable again: %v, rules %v", err, w.states)
		}
	})
}

// A namespace that may not be listed any more has no events, so the cache keeps an object that was deleted.
func TestRulesOfAnObjectThatIsGoneAreRemovedAlthoughTheCacheHasIt(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		w.stopWatches()
		w.remove(w.raps())
		if err := w.arm(c); !errors.Is(err, autopilot.ErrGone) {
			t.Error(err)
		}
		if err := w.arm(c); err != nil || len(w.states) > 0 {
			t.Errorf("%v, rules %v", err, w.states)
		}
	})
}

// The cache may be old, so only the API server proves that autopilot is off.
func TestRulesOfADatabaseThatIsOnAreNotRemovedByAnOldCache(t *testing.T) {
	for name, cache := range map[string]func(*world, *Controller){
		"the RdsAutopilot is missing": func(_ *world, c *Controller) { c.options.Kube = noAutopilots{c.options.Kube} },
		"the mode is Off": func(w *world, c *Controller) {
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Mode = v1alpha1.ModeOff })
			w.freezeAutopilots(c)
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Mode = v1alpha1.ModeAuto })
		},
		"spec.autopilot was false": func(w *world, c *Controller) {
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Status.Switch.Value = v1alpha1.SwitchOff })
			w.freezeAutopilots(c)
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Status.Switch.Value = v1alpha1.SwitchOn })
			w.setSwitch(nil)
			c.switches.last = map[Key]v1alpha1.Switch{}
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			c := w.process()
			w.settle(c)
			cache(w, c)
			if err := w.arm(c); !errors.Is(err, autopilot.ErrConflict) || len(w.states) == 0 || w.topic.URN == "" {
				t.Errorf("%v, rules %v, topic %+v; want a conflict", err, w.states, w.topic)
			}
		})
	}
}

// The removal waits for the cloud, and its write must not overwrite what was decided meanwhile.
func TestSwitchThatIsTurnedOnDuringTheRemovalStaysOn(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		w.setSwitch(new(false))
		w.mustDecide(c)
		w.onRemove = func() { w.onRemove = nil; w.setSwitch(new(true)); w.mustDecide(c) }
		if err := w.arm(c); !errors.Is(err, autopilot.ErrConflict) || w.rap().Status.Switch.Value != v1alpha1.SwitchOn {
			t.Errorf("%v, the switch is %+v", err, w.rap().Status.Switch)
		}
		if must := w.arm(c); must != nil || !w.armed() {
			t.Errorf("%v, armed %t at once", must, w.armed())
		}
	})
}

// A list of before the removal would show the rules again, and events need no list. It is reported once, although the
// status is refused at first.
func TestRulesAreRemovedOnceAndASweepUsesANewerList(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		begun, already := w.now, len(w.removes)
		w.setSwitch(new(false))
		w.statusRefusal, w.now = "denied by policy", w.now.Add(time.Minute)
		for range 3 {
			if err := w.arm(c); err == nil {
				t.Error("the refusal is not returned")
			}
		}
		w.statusRefusal = ""
		w.settle(c)
		c.armMarks.setSweep(database, begun)
		w.must(w.arm(c))
		if at := w.removes[already:]; len(at) != 2 || !at[1].After(begun) {
			t.Errorf("removals by lists of %v, want one, and that of the sweep by a newer list than %s", at, begun)
		}
		if _, n := w.countEvents(eventDisarmed); n != 1 {
			t.Errorf("%d events", n)
		}
	})
}

// checkGone checks that nothing of the database is in the cloud and in the status, and that there is no topic.
func (w *world) checkGone() {
	w.t.Helper()
	rap := w.rap()
	w.withLock(func() {
		if len(w.states) > 0 || w.topic.URN != "" || rap != nil && len(rap.Status.Alarms.Rules) > 0 {
			w.t.Errorf("rules %v, topic %+v, %+v; want none", w.states, w.topic, rap)
		}
	})
}

// Rules must not wait for SMN, because the sweep acts on them without any message.
func TestArmingWaitsOnlyForTheFirstCheckOfTheTopic(t *testing.T) {
	const pending = autopilot.SubscriptionPending
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	panics := func(context.Context) error { panic("broken") }
	for name, tc := range map[string]struct {
		alter func(*world)
		waits time.Duration
	}{
		"SMN hangs":                      {func(w *world) { w.onTopic = hangs }, topicTime},
		"the check panics":               {func(w *world) { w.onTopic = panics }, 0},
		"the topic cannot be stored":     {func(w *world) { w.topicRefusal = "denied" }, 0},
		"the ConfigMap cannot be read":   {func(w *world) { w.topicHidden = &autopilot.RefusedError{Message: "denied"} }, 0},
		"the API server does not answer": {func(w *world) { w.topicHidden = autopilot.ErrKubernetes }, 0},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			tc.alter(w)
			checks, onTopic := 0, w.onTopic
			w.onTopic = func(ctx context.Context) error { w.withLock(func() { checks++ }); return onTopic(ctx) }
			hasRules := func() (has bool) { w.withLock(func() { has = len(w.states) > 0 }); return has }
			w.run(w.process())
			if w.advance(tc.waits - time.Second); tc.waits > 0 && hasRules() {
				t.Error("arming has not waited")
			}
			if w.advance(5 * time.Second); !hasRules() {
				t.Error("arming still waits")
			}
			w.checkCondition(name, v1alpha1.ConditionArmed, metav1.ConditionFalse, pending)
			w.advance(10 * time.Minute)
			if checks > 40 {
				t.Errorf("%d checks of the topic in 10 minutes", checks)
			}
			w.withLock(func() { w.onTopic, w.topicRefusal, w.topicHidden = noError, "", nil })
			if w.advance(time.Minute); !w.armed() {
				t.Errorf("not armed: %+v", w.rap().Status.Conditions)
			}
		})
	}
}

// The receivers read the topic from the ConfigMap, and refuse each message without it.
func TestConfigMapOfTheTopicIsRepairedWithinSeconds(t *testing.T) {
	for name, change := range map[string]func(context.Context, dynamic.ResourceInterface) error{
		"deleted": func(ctx context.Context, in dynamic.ResourceInterface) error {
			return in.Delete(ctx, k8s.TopicConfigMap, metav1.DeleteOptions{})
		},
		"edited": func(ctx context.Context, in dynamic.ResourceInterface) error {
			_, err := in.Patch(ctx, k8s.TopicConfigMap, types.MergePatchType, []byte(`{"data":{"topicURN":"urn:other"}}`), metav1.PatchOptions{})
			return err
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			c := w.process()
			w.run(c)
			w.advance(time.Hour)
			right := c.options.Kube.Topic()
			w.must(change(t.Context(), w.admin.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default")))
			if w.advance(3 * time.Second); right.URN == "" || right != c.options.Kube.Topic() {
				t.Errorf("%+v, want %+v", c.options.Kube.Topic(), right)
			}
			w.withLock(func() { w.topicHidden = autopilot.ErrKubernetes }) // says nothing about the topic
			if w.advance(time.Hour); !w.armed() {
				t.Errorf("not armed: %+v", w.rap().Status.Conditions)
			}
		})
	}
}
