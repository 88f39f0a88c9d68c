// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

// stuckTargets is a cache whose watch of Rds is stuck.
type stuckTargets struct {
	Kubernetes
	last *autopilot.Target
}

func (s stuckTargets) Target(string, string) *autopilot.Target { return s.last }

// stuckAutopilots is a cache whose watch of RdsAutopilots is stuck.
type stuckAutopilots struct {
	Kubernetes
	last *v1alpha1.RdsAutopilot
}

func (s stuckAutopilots) Autopilot(string, string) (*v1alpha1.RdsAutopilot, bool) {
	return s.last, true
}

// startStorageAlarm returns a controller whose database is armed and has a storage alarm.
func (w *world) startStorageAlarm(t *testing.T) *Controller {
	t.Helper()
	c := w.process()
	w.settle(t, c)
	w.usedGB = 93.1
	w.alarm(v1alpha1.MetricStorage, true)
	return c
}

func TestRoundKeepsPendingChangeWhenCacheHasRdsBeforePatch(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.startStorageAlarm(t)
		c.options.Kube = stuckTargets{c.options.Kube, c.options.Kube.Target(database.Namespace, database.Name)}
		for range 3 {
			w.now = w.now.Add(time.Second)
			if _, err := w.decide(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if s := w.rap().Status; s.Pending == nil || s.Pending.To != "110" || len(s.Changes) > 0 || !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("pending %+v, changes %+v, patches %v; want one pending change to 110", s.Pending, s.Changes, w.patches)
		}
	})
}

func TestRoundOnOldAutopilotConflictsAndPatchesNothing(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.startStorageAlarm(t)
		last, _ := c.options.Kube.Autopilot(database.Namespace, database.Name)
		c.options.Kube = stuckAutopilots{c.options.Kube, last}
		if _, err := w.decide(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		w.usedGB = 104 // a second decision would go beyond 110 GB
		w.now = w.now.Add(time.Second)
		if _, err := w.decide(t.Context(), c); !errors.Is(err, autopilot.ErrConflict) {
			t.Errorf("%v, want a conflict", err)
		}
		if !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("patches %v, want one", w.patches)
		}
		w.now = w.now.Add(time.Second)
		if _, err := w.decide(t.Context(), c); err != nil {
			t.Errorf("the retry must read the stored version: %v", err)
		}
	})
}

func TestRoundPatchesNothingWhenAutopilotWasTurnedOffMeanwhile(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.startStorageAlarm(t)
		last := c.options.Kube.Target(database.Namespace, database.Name)
		c.options.Kube = stuckTargets{c.options.Kube, last}
		off := false
		w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = &off })
		c.switches = switchTracker{last: make(map[Key]v1alpha1.Switch)} // the watch event has not come
		if _, err := w.decide(t.Context(), c); !errors.Is(err, autopilot.ErrConflict) {
			t.Errorf("%v, want a conflict", err)
		}
		if len(w.patches) > 0 {
			t.Errorf("patches %v, want none", w.patches)
		}
	})
}

func TestArmingOnOldAutopilotStartsFromStoredAlarms(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		for w.rap() == nil {
			_, _ = w.decide(t.Context(), c)
		}
		synctest.Wait()
		last, _ := c.options.Kube.Autopilot(database.Namespace, database.Name)
		w.settle(t, c)
		if len(last.Status.Alarms.Rules) > 0 || !w.armed() {
			t.Fatal("the database must be armed, and the old cache must not show it")
		}
		c.options.Kube = stuckAutopilots{c.options.Kube, last}
		w.names = nil
		if _, err := c.arm(t.Context(), database); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(w.names, "topic") {
			t.Errorf("steps %v, want no second topic", w.names)
		}
	})
}

func TestTargetChangedStartsNoRoundForOwnPatch(t *testing.T) {
	patch := &v1alpha1.Intent{Kind: v1alpha1.KindVolume, From: "100", To: "110"}
	at := func(version, instance string, gb int) *autopilot.Target {
		return &autopilot.Target{
			Namespace: database.Namespace, Name: database.Name, ResourceVersion: version, InstanceID: instance,
			Wanted: autopilot.Wanted{VolumeGB: gb},
		}
	}
	for name, tc := range map[string]struct {
		old, now *autopilot.Target
		patch    *v1alpha1.Intent
		want     bool
	}{
		"our own patch":             {at("1", "a", 100), at("2", "a", 110), patch, true},
		"not our patch":             {at("1", "a", 100), at("2", "a", 110), nil, false},
		"our value was reverted":    {at("2", "a", 110), at("3", "a", 100), patch, false},
		"another instance as well":  {at("1", "a", 100), at("2", "b", 110), patch, false},
		"seen for the first time":   {nil, at("2", "a", 110), patch, false},
		"deleted":                   {at("2", "a", 110), nil, patch, false},
		"requested since our patch": {at("2", "a", 110), at("3", "a", 120), patch, false},
	} {
		c := &Controller{memories: map[Key]*memory{database: {patch: tc.patch}}}
		if got := c.isOwnPatch(database, tc.old, tc.now); got != tc.want {
			t.Errorf("%s: own patch %t, want %t", name, got, tc.want)
		}
		if c.isOwnPatch(database, tc.old, tc.now) {
			t.Errorf("%s: the same change is our patch a second time", name)
		}
	}
}

// An RdsAutopilot whose Rds was created again may be seen before the new Rds.
func TestAlarmsStayWhenCacheLacksTheRds(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		armed := w.rap().Status.Alarms
		c.options.Kube = stuckTargets{c.options.Kube, nil}
		for range 2 {
			if _, err := c.arm(t.Context(), database); err != nil {
				t.Fatal(err)
			}
		}
		if rap := w.rap(); rap == nil || !sameRules(rap.Status.Alarms, armed) || rap.Status.Alarms.TopicURN != armed.TopicURN {
			t.Fatalf("the RdsAutopilot is %+v, want the alarms %+v", rap, armed)
		}
		w.remove(w.rdss())
		if _, err := c.arm(t.Context(), database); err != nil {
			t.Fatal(err)
		}
		if rap := w.rap(); rap != nil {
			t.Errorf("without an Rds, the RdsAutopilot is still there: %+v", rap.Status.Alarms)
		}
	})
}

// A watch that lags for minutes must not give back the place of a flavor that is changing.
func TestFlavorKeepsItsPlaceWhenARoundHasAnOldCache(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		w.cpu, w.now = 97, w.now.Add(20*time.Minute)
		w.alarm(v1alpha1.MetricCPU, true)
		last, _ := c.options.Kube.Autopilot(database.Namespace, database.Name)
		c.options.Kube = stuckAutopilots{c.options.Kube, last}
		c.limiter.kube = register{autopilots: []*v1alpha1.RdsAutopilot{last}}
		if _, err := w.decide(t.Context(), c); err != nil || len(w.patches) != 1 {
			t.Fatalf("patches %v: %v", w.patches, err)
		}
		other := Key{"other", "db"}
		check := func(round string) {
			t.Helper()
			w.now = w.now.Add(3 * time.Minute)
			if _, err := w.decide(t.Context(), c); err != nil && !errors.Is(err, autopilot.ErrConflict) {
				t.Fatal(err)
			}
			if c.limiter.reserve(other, 1, w.now) {
				t.Errorf("%s: its place is free while the flavor changes", round)
			}
			c.limiter.release(other)
		}
		check("on the old cache")
		check("after the conflict")
		w.alarm(v1alpha1.MetricCPU, false)
		check("on the old cache, without an alarm")
		w.operate()
		w.now = w.now.Add(time.Minute)
		for range 2 { // the first may end in a conflict
			_, _ = w.decide(t.Context(), c)
		}
		if !c.limiter.reserve(other, 1, w.now) {
			t.Error("its place is not free, although the flavor has changed")
		}
	})
}

// A round whose alarm was read for minutes has its place nevertheless.
func TestFlavorHasItsPlaceWhenTheReadsBeforeTookMinutes(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		w.cpu, w.now = 97, w.now.Add(20*time.Minute)
		w.alarm(v1alpha1.MetricCPU, true)
		free := false
		c.options.Cloud = slowReads{c.options.Cloud, func() { w.now = w.now.Add(2 * time.Minute) },
			func() { free = c.limiter.reserve(Key{"other", "db"}, 1, w.now) }}
		if _, err := w.decide(t.Context(), c); err != nil || len(w.patches) != 1 {
			t.Fatalf("patches %v: %v", w.patches, err)
		}
		if free {
			t.Error("its place was free while the round went on")
		}
	})
}

// slowReads is a cloud whose alarm states take time, and whose resize list is read after the place was reserved.
type slowReads struct {
	Cloud
	onStates, onResizeList func()
}

func (s slowReads) AlarmStates(ctx context.Context, notBefore time.Time) (map[string]AlarmState, error) {
	s.onStates()
	return s.Cloud.AlarmStates(ctx, notBefore)
}

func (s slowReads) ResizeList(ctx context.Context, inst autopilot.Instance) ([]string, error) {
	s.onResizeList()
	return s.Cloud.ResizeList(ctx, inst)
}
