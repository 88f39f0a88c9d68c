// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

func TestFlavorLimiterReservesPlacesUntilReleased(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	key := func(name string) Key { return Key{"ns", name} }
	l := newFlavorLimiter(cachedAutopilots{})
	first, second, third := l.reserve(key("a"), 2, now), l.reserve(key("b"), 2, now), l.reserve(key("c"), 2, now)
	if !first || !second || third || !l.reserve(key("a"), 2, now) {
		t.Errorf("reserved %t, %t, %t; want the two places for the first two", first, second, third)
	}
	l.release(key("b"))
	if !l.reserve(key("c"), 2, now) {
		t.Error("a released place is not free")
	}
}

func TestFlavorLimiterCountsChangesOfTheCache(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	changing := func(age time.Duration, status string) *v1alpha1.RdsAutopilot {
		a := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
		at, since := metav1.NewMicroTime(now.Add(-age)), metav1.NewTime(now.Add(-age))
		a.Status.Pending = &v1alpha1.Intent{Kind: v1alpha1.KindFlavor, DecisionTime: at, AskedTime: &at}
		a.Status.Instance = &v1alpha1.Instance{Status: status, ActiveSince: &since}
		return a
	}
	const twoHours = 2 * time.Hour
	refused := changing(time.Minute, "ACTIVE")
	refused.Status.Pending.Refusal, refused.Status.Pending.AskedTime = &v1alpha1.Refusal{Count: 1}, nil
	byCloud := refused.DeepCopy()
	byCloud.Spec.Apply, byCloud.Status.Pending.AskedTime = v1alpha1.ApplyCloud, &byCloud.Status.Pending.DecisionTime
	byCloud.Status.Pending.Refusal.Reason = "InstanceBusy"
	byOperator := byCloud.DeepCopy()
	byOperator.Status.Pending.Refusal.Time = metav1.NewMicroTime(now.Add(-time.Minute))
	byOperator.Status.Instance.Status = "MODIFYING"
	notRequested := byOperator.DeepCopy()
	notRequested.Status.Pending.AskedTime = nil
	unclear := byCloud.DeepCopy()
	unclear.Status.Pending.Refusal.Reason = "CloudUnreachable"
	unclear.Status.Pending.Refusal.Time = refused.Status.Pending.DecisionTime
	late := changing(time.Minute, "MODIFYING")
	late.Status.Pending.DecisionTime = metav1.NewMicroTime(now.Add(-twoHours))
	lateInCloud := late.DeepCopy()
	lateInCloud.Spec.Apply = v1alpha1.ApplyCloud
	lateInCloud.Status.Pending.JobTime = late.Status.Pending.AskedTime
	lateInCloud.Status.Pending.AskedTime = &late.Status.Pending.DecisionTime
	for name, tc := range map[string]struct {
		other    *v1alpha1.RdsAutopilot
		hasPlace bool
	}{
		"in progress":                                  {changing(14*time.Minute, "MODIFYING"), true},
		"stalled":                                      {changing(15*time.Minute, "ACTIVE"), false},
		"failed for an hour":                           {changing(time.Hour, "FAILED"), true},
		"failed for two hours":                         {changing(2*time.Hour, "FAILED"), false},
		"refused by the API":                           {refused, false},
		"refused by the cloud":                         {byCloud, false},
		"refused because an operator was faster":       {byOperator, true},
		"refused because of another writer's change":   {notRequested, false},
		"the answer was lost":                          {unclear, true},
		"decided two hours ago, patched a minute ago":  {late, true},
		"decided two hours ago, accepted a minute ago": {lateInCloud, true},
		"no change of the flavor":                      {&v1alpha1.RdsAutopilot{}, false},
	} {
		l := newFlavorLimiter(cachedAutopilots{autopilots: []*v1alpha1.RdsAutopilot{tc.other}})
		l.check(Key{"ns", "a"}, now)
		if free := l.reserve(Key{"ns", "b"}, 1, now); free == tc.hasPlace {
			t.Errorf("%s: has its place %t, want %t", name, !free, tc.hasPlace)
		}
		if !l.reserve(Key{"ns", "a"}, 2, now) {
			t.Errorf("%s: its own change counts against it", name)
		}
	}

	byOperator.Status.Instance.Status = "ACTIVE"
	for name, other := range map[string]*v1alpha1.RdsAutopilot{
		"stalled": changing(21*time.Minute, "ACTIVE"), "refused because an operator was faster": byOperator,
	} {
		l := newFlavorLimiter(cachedAutopilots{autopilots: []*v1alpha1.RdsAutopilot{other}})
		l.check(Key{"ns", "a"}, now.Add(-7*time.Minute))
		if l.reserve(Key{"ns", "b"}, 1, now) {
			t.Errorf("%s: it has no place although no round has checked that, as after a time without a leader", name)
		}
		l.check(Key{"ns", "a"}, now)
		if !l.reserve(Key{"ns", "b"}, 1, now) {
			t.Errorf("%s: it has a place after a round has checked it", name)
		}
	}
}

// checkPlace checks whether the flavor change of the database has the only place.
func (w *world) checkPlace(c *Controller, when string, has bool) {
	w.t.Helper()
	other := Key{"other", "db"}
	if free := c.limiter.reserve(other, 1, w.now); free == has {
		w.t.Errorf("%s: has its place %t, want %t", when, !free, has)
	}
	c.limiter.release(other)
}

// The watch may lag by minutes while a flavor changes.
func TestFlavorKeepsItsPlaceWhenARoundHasAnOldCache(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.startAlarm(v1alpha1.MetricCPU)
		c.limiter.kube = cachedAutopilots{autopilots: []*v1alpha1.RdsAutopilot{w.freezeAutopilots(c)}}
		w.mustDecide(c)
		if len(w.patches) != 1 {
			t.Fatalf("patches %v", w.patches)
		}
		decide := func() {
			w.now = w.now.Add(3 * time.Minute)
			if _, err := w.decide(c); err != nil && !errors.Is(err, autopilot.ErrConflict) {
				t.Fatal(err)
			}
		}
		decide()
		w.checkPlace(c, "after a conflict", true)
		decide()
		w.checkPlace(c, "after the retry", true)
		w.clear(v1alpha1.MetricCPU)
		decide()
		w.checkPlace(c, "after the alarm", true)
		w.apply()
		decide()
		decide() // the first one may end in a conflict
		w.checkPlace(c, "after the change", false)
	})
}

// An operator may act on the patch of the Rds before the status shows it.
func TestPatchedFlavorHasItsPlaceAlthoughTheCloudIsBusy(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newCloudWorld(t, true)
		c := w.startAlarm(v1alpha1.MetricCPU)
		w.refusals = map[string]*autopilot.RefusedError{
			w.inst.ID: {Reason: autopilot.ReasonInstanceBusy, Message: "the operator was faster"},
		}
		w.mustDecide(c)
		synctest.Wait()
		if len(w.patches) != 1 {
			t.Fatalf("patches %v", w.patches)
		}
		w.checkPlace(c, "after the patch", true)
		w.inst.Status = "MODIFYING"
		w.now = w.now.Add(time.Minute)
		w.mustDecide(c)
		synctest.Wait()
		w.now = w.now.Add(2 * time.Minute)
		w.checkPlace(c, "while the operator changes it", true)
	})
}
