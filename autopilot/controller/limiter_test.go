// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"testing"
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

func TestFlavorLimiterCountsPendingChangesOfTheCache(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	pending := func(age time.Duration, alter func(*v1alpha1.Change)) v1alpha1.Change {
		at := metav1.NewMicroTime(now.Add(-age))
		ch := v1alpha1.Change{Kind: v1alpha1.KindFlavor, By: v1alpha1.ByAutopilot, DecisionTime: &at, RequestTime: &at}
		if alter != nil {
			alter(&ch)
		}
		return ch
	}
	refused := func(reason string) func(*v1alpha1.Change) {
		return func(ch *v1alpha1.Change) { ch.Refusal = &v1alpha1.Refusal{Count: 1, Reason: reason} }
	}
	for name, tc := range map[string]struct {
		other    v1alpha1.Change
		hasPlace bool
	}{
		"decided":              {pending(time.Minute, func(ch *v1alpha1.Change) { ch.RequestTime = nil }), true},
		"requested":            {pending(2*time.Hour-time.Second, nil), true},
		"for two hours":        {pending(2*time.Hour, nil), false},
		"refused by the API":   {pending(time.Minute, refused("")), false},
		"refused by the cloud": {pending(time.Minute, refused("QuotaExceeded")), false},
		"the answer was lost":  {pending(time.Minute, refused("CloudUnreachable")), true},
		"decided two hours ago, accepted a minute ago": {pending(2*time.Hour, func(ch *v1alpha1.Change) {
			ch.StartTime = new(metav1.NewMicroTime(now.Add(-time.Minute)))
		}), true},
		"completed": {pending(time.Minute, func(ch *v1alpha1.Change) { ch.Outcome = v1alpha1.OutcomeCompleted }), false},
		"by others": {pending(time.Minute, func(ch *v1alpha1.Change) { ch.DecisionTime = nil }), false},
		"a volume":  {pending(time.Minute, func(ch *v1alpha1.Change) { ch.Kind = v1alpha1.KindVolume }), false},
	} {
		a := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
		a.Status.Changes = []v1alpha1.Change{tc.other}
		l := newFlavorLimiter(cachedAutopilots{autopilots: []*v1alpha1.RdsAutopilot{a}})
		if free := l.reserve(Key{"ns", "b"}, 1, now); free == tc.hasPlace {
			t.Errorf("%s: has its place %t, want %t", name, !free, tc.hasPlace)
		}
		if !l.reserve(Key{"ns", "a"}, 2, now) {
			t.Errorf("%s: its own change counts against it", name)
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
