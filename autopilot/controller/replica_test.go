// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

// changeReplica begins to grow a read replica. The caller holds the lock.
func (c cloud) changeReplica(id string, i v1alpha1.Intent) (jobID string, err error) {
	n := slices.IndexFunc(c.inst.Replicas, func(r autopilot.Replica) bool { return r.ID == id })
	switch {
	case strconv.Itoa(c.inst.Replicas[n].VolumeGB) == i.To:
		return "", nil
	case c.growing[id]:
		return "", &autopilot.RefusedError{Reason: autopilot.ReasonInstanceBusy, Message: "in MODIFYING"}
	case c.refuses[id] != nil:
		return "", c.refuses[id]
	}
	return "job-" + id, c.do("replica", func() error {
		c.order, c.growing[id] = append(c.order, id), true
		return nil
	})
}

// endReplicas ends the growth of the read replicas.
func (w *world) endReplicas(toGB int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inst.Replicas = slices.Clone(w.inst.Replicas)
	for n, r := range w.inst.Replicas {
		if w.growing[r.ID] {
			w.inst.Replicas[n].VolumeGB = toGB
		}
	}
	clear(w.growing)
}

func newReplicaWorld(t *testing.T, withRds bool) *world {
	t.Helper()
	w := newCloudWorld(t, withRds)
	w.inst.Replicas = []autopilot.Replica{{ID: "reader", Name: "reader", VolumeGB: 100}}
	return w
}

// fill raises the storage alarm and runs rounds for that long.
func (w *world) fill(t *testing.T, c *Controller, rounds int) {
	t.Helper()
	w.settle(t, c)
	w.usedGB = 92
	w.alarm(v1alpha1.MetricStorage, true)
	for range rounds {
		if _, err := w.decide(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(time.Minute)
	}
}

func TestReplicaOfAGrowingPrimary(t *testing.T) {
	out := &autopilot.RefusedError{Reason: autopilot.ReasonCloudRefused, Message: "DBS.200308", IsOutOfOrder: true}
	no := &autopilot.RefusedError{Reason: autopilot.ReasonQuotaExceeded, Message: "DBS.200046"}
	for name, tc := range map[string]struct {
		alter  func(*world, *Controller)
		rounds int
		begun  []string
		reason autopilot.Reason
	}{
		"the primary waits":                     {nil, 9, []string{"reader"}, autopilot.ReasonChangePending},
		"it waits for 10 minutes at most":       {nil, 11, []string{"reader", "in01"}, autopilot.ReasonAlarmInForce},
		"the replica is to follow":              {func(w *world, _ *Controller) { w.refuses["reader"] = out }, 1, []string{"in01"}, autopilot.ReasonAlarmInForce},
		"the replica is refused":                {func(w *world, _ *Controller) { w.refuses["reader"] = no }, 1, []string{"in01"}, autopilot.ReasonAlarmInForce},
		"the administrator forbids the replica": {func(_ *world, c *Controller) { c.options.Allowed.Instances = []string{"*/in01"} }, 1, []string{"in01"}, autopilot.ReasonAlarmInForce},
	} {
		for way, withRds := range map[string]bool{"with an Rds": true, "without an Rds": false} {
			t.Run(name+", "+way, func(t *testing.T) {
				level.InBubble(t, func(t *testing.T) {
					w := newReplicaWorld(t, withRds)
					c := w.process()
					if tc.alter != nil {
						tc.alter(w, c)
					}
					w.fill(t, c, tc.rounds)
					if d := w.rap().Status.Decisions[0]; !slices.Equal(w.order, tc.begun) || d.Reason != string(tc.reason) {
						t.Errorf("the cloud has begun %v, want %v; decision %+v", w.order, tc.begun, d)
					}
					if patched := len(w.patches) > 0; patched != (withRds && slices.Contains(tc.begun, "in01")) {
						t.Errorf("patches %v, although the operator would grow the primary at once", w.patches)
					}
					if _, normal := w.countEvents(eventReplica); (normal == 1) != slices.Contains(tc.begun, "reader") {
						t.Errorf("%d events of the replica", normal)
					}
				})
			})
		}
	}
}

// The cap of the object that manages the replica itself wins over the growth of its primary.
func TestReplicaWithACapOfItsOwnStays(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newReplicaWorld(t, false)
		_, err := w.raps().Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.Kind, "metadata": map[string]any{"name": "of-the-reader"},
			"spec": map[string]any{"apply": "Cloud", "instanceID": "reader", "storage": map[string]any{"maxGB": int64(100)}},
		}}, metav1.CreateOptions{})
		w.must(err)
		c := w.process()
		w.fill(t, c, 1)
		w.endJobs()
		w.settle(t, c)
		if warnings, _ := w.countEvents(string(autopilot.ReasonReplicaSmaller)); warnings != 1 || !slices.Equal(w.order, []string{"in01"}) {
			t.Errorf("%d warnings, the cloud has begun %v; want one warning, and only the primary", warnings, w.order)
		}
	})
}

// With apply: Operator the service never asks the cloud to grow a replica, and reports it.
func TestApplyOperatorGrowsNoReplica(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.inst.Replicas = []autopilot.Replica{{ID: "reader", Name: "reader", VolumeGB: 100}}
		c := w.process()
		w.fill(t, c, 1)
		w.operate()
		w.settle(t, c)
		if warnings, _ := w.countEvents(string(autopilot.ReasonReplicaSmaller)); warnings != 1 || len(w.order) > 0 || !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("%d warnings, the cloud has begun %v, patches %v", warnings, w.order, w.patches)
		}
	})
}

// Wherever the process is killed, the cloud begins to grow the replica once, and then the primary once.
func TestKilledAtEveryStepReplicaAndPrimaryGrowOnce(t *testing.T) {
	for _, replicaFirst := range []bool{true, false} {
		for _, applied := range []bool{false, true} {
			t.Run(fmt.Sprintf("replica first %t, applied %t", replicaFirst, applied), func(t *testing.T) {
				level.InBubble(t, func(t *testing.T) {
					for step, killed := 1, true; killed; step++ {
						w := newReplicaWorld(t, false)
						w.killAt, w.applied = step, applied
						want := []string{"reader", "in01"}
						if !replicaFirst {
							want = []string{"in01", "reader"}
							w.refuses["reader"] = &autopilot.RefusedError{Reason: autopilot.ReasonCloudRefused, IsOutOfOrder: true}
						}
						killed = w.growBoth()
						name := fmt.Sprintf("step %d (%v)", step, w.names[min(step, len(w.names))-1])
						if !slices.Equal(w.order, want) || w.inst.VolumeGB != 110 || w.inst.Replicas[0].VolumeGB != 110 {
							t.Fatalf("%s: the cloud has begun %v, want %v: %+v", name, w.order, want, w.inst)
						}
						if ch := w.rap().Status.Changes; len(ch) != 1 || ch[0].Outcome != v1alpha1.OutcomeCompleted || ch[0].By != v1alpha1.ByAutopilot {
							t.Fatalf("%s: changes %+v", name, ch)
						}
						w.stop()
					}
				})
			})
		}
	}
}

// growBoth runs rounds until the primary and its replica have grown. What the cloud has begun ends two rounds later.
func (w *world) growBoth() (killed bool) {
	for c, round := w.process(), 0; round < 26; round++ {
		if round == 5 {
			w.usedGB = 92
			w.alarm(v1alpha1.MetricStorage, true)
		}
		w.now = w.now.Add(time.Minute)
		if _, err := w.look(w.t.Context(), c); err != nil && w.killed {
			killed = true
			w.stop()
			c = w.process()
		}
		if round%3 == 2 {
			w.endReplicas(110)
			if w.endJobs(); w.inst.VolumeGB == 110 {
				w.alarm(v1alpha1.MetricStorage, false)
				clear(w.refuses)
			}
		}
	}
	return killed
}

// A user who turns autopilot off while the round reads the cloud stops the growth of the replica, too.
func TestReplicaDoesNotGrowWhenAutopilotWasTurnedOff(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newReplicaWorld(t, true)
		c := w.process()
		w.settle(t, c)
		w.usedGB = 92
		w.alarm(v1alpha1.MetricStorage, true)
		w.duringCloud = func() { off := false; w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = &off }) }
		if _, err := w.decide(t.Context(), c); !errors.Is(err, autopilot.ErrConflict) || len(w.order) > 0 {
			t.Errorf("the cloud has begun %v, error %v", w.order, err)
		}
	})
}
