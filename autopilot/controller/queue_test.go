// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// newLeader returns a controller with queues, without Kubernetes and cloud.
func newLeader(t *testing.T) *Controller {
	t.Helper()
	c := New(Options{Kube: cachedAutopilots{}, Log: zap.NewNop(), Reg: prometheus.NewRegistry(), Now: time.Now})
	addQueues(t, c)
	return c
}

// addQueues gives a controller empty queues, as a leader has them.
func addQueues(t *testing.T, c *Controller) {
	t.Helper()
	c.queues = newQueues(c.decideMarks)
	t.Cleanup(c.queues.shutDown)
}

func TestDecisionsWithNewsGoFirst(t *testing.T) {
	c := newLeader(t)
	key := func(name string) Key { return Key{"ns", name} }
	for _, name := range []string{"a", "b", "c"} {
		c.enqueueForSweep(key(name), time.Now())
	}
	c.queues.decide.Add(key("recheck"))
	c.enqueue(key("news"))
	c.enqueue(key("c"))                     // a sweep has requested it already
	c.enqueueForSweep(key("c"), time.Now()) // another sweep must not lower its priority
	var order []string
	for c.queues.decide.Len() > 0 {
		k, _ := c.queues.decide.Get()
		order = append(order, k.Name)
		c.queues.decide.Done(k)
	}
	if want := []string{"news", "c", "a", "b", "recheck"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

// An Rds may have events all the time. They must not prevent the checks of the used space and of the alarms by the sweep.
func TestEventKeepsTheMarkOfTheSweep(t *testing.T) {
	c, begin := newLeader(t), time.Unix(100, 0)
	c.enqueueForSweep(database, begin)
	c.enqueue(database)
	if got, want := c.decideMarks.take(database), (mark{isSweep: true, begun: begin, isNews: true}); got != want {
		t.Errorf("decide: %+v, want %+v", got, want)
	}
	if got, want := c.armMarks.take(database), (mark{isSweep: true, begun: begin}); got != want {
		t.Errorf("arm: %+v, want %+v", got, want)
	}
}

// The retry of a sweep's round still reads the used space. Only a conflict is news.
func TestRetryKeepsTheMarkOfItsRound(t *testing.T) {
	begun, notBefore := time.Unix(100, 0), time.Unix(200, 0)
	for name, tc := range map[string]struct {
		taken mark
		err   error
		want  mark
	}{
		"sweep, no answer":          {mark{isSweep: true, begun: begun}, errNoAnswer, mark{isSweep: true, begun: notBefore}},
		"news, no answer":           {mark{isNews: true}, errNoAnswer, mark{}},
		"news, conflict":            {mark{isNews: true}, autopilot.ErrConflict, mark{isNews: true, begun: notBefore}},
		"sweep and news, no answer": {mark{true, begun, true}, errNoAnswer, mark{isSweep: true, begun: notBefore}},
	} {
		m := newMarks()
		m.restore(database, tc.taken, notBefore, tc.err)
		if got := m.take(database); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// The leader writes the status in every round. A round for each of these writes would be a loop.
func TestOwnStatusWriteStartsNoRound(t *testing.T) {
	deleted := metav1.Now()
	for name, tc := range map[string]struct {
		change func(*v1alpha1.RdsAutopilot)
		starts bool
	}{
		"own status": {func(a *v1alpha1.RdsAutopilot) {
			a.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, To: "110"}}
			a.Status.Decisions = []v1alpha1.DecisionRecord{{Reason: "AlarmInForce"}}
		}, false},
		"signal": {func(a *v1alpha1.RdsAutopilot) {
			a.Status.Intake.Signals = []v1alpha1.Signal{{MessageID: "1"}}
		}, true},
		"policy":         {func(a *v1alpha1.RdsAutopilot) { a.Generation++; a.Spec.Mode = v1alpha1.ModeOff }, true},
		"deletion":       {func(a *v1alpha1.RdsAutopilot) { a.DeletionTimestamp = &deleted }, true},
		"another object": {func(a *v1alpha1.RdsAutopilot) { a.UID = "2" }, true},
	} {
		c := newLeader(t)
		old := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "db", UID: "1", ResourceVersion: "1",
		}}
		now := old.DeepCopy()
		now.ResourceVersion = "2"
		tc.change(now)
		c.AutopilotChanged(old, now)
		if starts := c.queues.decide.Len() == 1; starts != tc.starts {
			t.Errorf("%s: starts a round %t, want %t", name, starts, tc.starts)
		}
	}
}

func TestOwnPatchStartsNoRound(t *testing.T) {
	patch := &v1alpha1.Change{Kind: v1alpha1.KindVolume, From: "100", To: "110"}
	at := func(version, instance string, gb int) *autopilot.Target {
		return &autopilot.Target{
			Namespace: database.Namespace, Name: database.Name, ResourceVersion: version, InstanceID: instance,
			Wanted: autopilot.Wanted{VolumeGB: gb},
		}
	}
	for name, tc := range map[string]struct {
		old, now *autopilot.Target
		patch    *v1alpha1.Change
		isOwn    bool
	}{
		"our patch":                  {at("1", "a", 100), at("2", "a", 110), patch, true},
		"patch of others":            {at("1", "a", 100), at("2", "a", 110), nil, false},
		"our value was reverted":     {at("2", "a", 110), at("3", "a", 100), patch, false},
		"another instance as well":   {at("1", "a", 100), at("2", "b", 110), patch, false},
		"seen for the first time":    {nil, at("2", "a", 110), patch, false},
		"deleted":                    {at("1", "a", 110), nil, patch, false},
		"another value than patched": {at("1", "a", 100), at("2", "a", 120), patch, false},
	} {
		c := &Controller{memories: map[Key]*memory{database: {patched: tc.patch}}}
		if got := c.isOwnPatch(database, tc.old, tc.now); got != tc.isOwn {
			t.Errorf("%s: own patch %t, want %t", name, got, tc.isOwn)
		}
	}
}
