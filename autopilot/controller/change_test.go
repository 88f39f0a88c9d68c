// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
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
	"github.com/mcsps/rds-autopilot/test/level"
)

// Change begins a job, whose id says what it makes.
func (c cloud) Change(_ context.Context, id string, i v1alpha1.Intent) (jobID string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case id != c.inst.ID:
		return c.changeReplica(id, i)
	case c.inst.Flavor == i.To || strconv.Itoa(c.inst.VolumeGB) == i.To:
		return "", nil
	case c.inst.Status != autopilot.StatusActive:
		return "", autopilot.ErrConflict
	}
	if c.duringAsk != nil {
		c.duringAsk()
	}
	jobID = "job-" + i.To
	return jobID, c.do("change", func() error {
		c.order = append(c.order, id)
		c.begun, c.inst.Status = append(c.begun, i.To), "MODIFYING"
		return nil
	})
}

// Job is done once the instance is ACTIVE again.
func (c cloud) Job(context.Context, string) (autopilot.Job, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inst.Status == autopilot.StatusActive {
		return autopilot.Job{State: autopilot.JobDone}, nil
	}
	return autopilot.Job{}, nil
}

// endJobs ends what the cloud has begun.
func (w *world) endJobs() {
	for _, to := range w.begun {
		if size, err := strconv.Atoi(to); err == nil {
			w.inst.VolumeGB = size
		} else {
			w.inst.Flavor, w.inst.VCPUs, w.inst.MemoryGB = to, 4, 16
		}
	}
	w.inst.Status = autopilot.StatusActive
}

// newCloudWorld is a database whose autopilot asks the cloud itself.
func newCloudWorld(t *testing.T, withRds bool) *world {
	t.Helper()
	w := newWorld(t)
	spec := map[string]any{"apply": "Cloud"}
	if !withRds {
		w.remove(w.rdss())
		spec["instanceID"] = w.inst.ID
	}
	_, err := w.raps().Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.Kind, "metadata": map[string]any{"name": database.Name}, "spec": spec,
	}}, metav1.CreateOptions{})
	w.must(err)
	return w
}

// A message that comes while the cloud is asked does not lose the job's id: that the job fails is said, and not only that the
// cloud was asked twice. Nor does it lose the record of the decision.
func TestAMessageDuringTheRequestLosesNoJob(t *testing.T) {
	for name, withRds := range map[string]bool{"with an Rds": true, "without an Rds": false} {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				w := newCloudWorld(t, withRds)
				c := w.process()
				w.settle(t, c)
				w.usedGB = 93
				w.alarm(v1alpha1.MetricStorage, true)
				w.duringAsk = func() { w.writeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Status.ObservedGeneration++ }) }
				if _, err := w.decide(t.Context(), c); !errors.Is(err, autopilot.ErrConflict) {
					t.Fatalf("no conflict: %v", err)
				}
				if p := w.rap().Status.Pending; p == nil || p.JobID != "job-110" {
					t.Errorf("pending %+v", p)
				}
				w.settle(t, c)
				if d := w.rap().Status.Decisions; !slices.ContainsFunc(d, func(d v1alpha1.DecisionRecord) bool {
					return d.Reason == string(autopilot.ReasonAlarmInForce) && d.To == "110"
				}) {
					t.Errorf("decisions %+v", d)
				}
				if warnings, normal := w.countEvents(string(autopilot.ActionGrowVolume)); warnings != 0 || normal != 1 {
					t.Errorf("%d events of the growth", warnings+normal)
				}
			})
		})
	}
}

// Wherever the process is killed, at a write to Kubernetes or at the request to the cloud, before or after it was applied: the
// cloud begins one change, and the status says that it was ours.
func TestKilledAtEveryStepTheCloudBeginsOneChange(t *testing.T) {
	for _, tc := range []struct {
		name   string
		metric v1alpha1.Metric
		pace   time.Duration
		to     string
	}{{"volume", v1alpha1.MetricStorage, time.Minute, "110"}, {"flavor", v1alpha1.MetricCPU, 4 * time.Minute, "rds.mysql.n1.xlarge.4"}} {
		for _, withRds := range []bool{true, false} {
			for _, applied := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, with an Rds %t, applied %t", tc.name, withRds, applied), func(t *testing.T) {
					in := level.InBubble
					if withRds {
						in = level.InLongBubble
					}
					in(t, func(t *testing.T) {
						for step, killed := 1, true; killed; step++ {
							w := newCloudWorld(t, withRds)
							w.killAt, w.applied = step, applied
							killed = w.runScenario(tc.metric, tc.pace, w.endJobs)
							name := fmt.Sprintf("step %d (%v)", step, w.names[min(step, len(w.names))-1])
							if !slices.Equal(w.begun, []string{tc.to}) {
								t.Fatalf("%s: the cloud has begun %v, want %s", name, w.begun, tc.to)
							}
							if ch := w.rap().Status.Changes; len(ch) != 1 || ch[0].Outcome != v1alpha1.OutcomeCompleted || ch[0].By != v1alpha1.ByAutopilot {
								t.Fatalf("%s: changes %+v", name, ch)
							}
							if !slices.ContainsFunc(w.rap().Status.Decisions, func(d v1alpha1.DecisionRecord) bool {
								return d.Reason == string(autopilot.ReasonAlarmInForce) && d.To == tc.to
							}) {
								t.Fatalf("%s: decisions %+v", name, w.rap().Status.Decisions)
							}
							if withRds && !slices.Equal(w.patches, []string{tc.to}) || !withRds && (len(w.patches) > 0 || w.rds() != nil) {
								t.Fatalf("%s: patches %v", name, w.patches)
							}
							w.stop()
						}
					})
				})
			}
		}
	}
}

// Somebody's flavor change has begun just before our request, so the cloud is busy. Our growth is neither told as done nor
// waited for: the first check after that change requests it again.
func TestBusyAnswerIsNotTakenForAStartedChange(t *testing.T) {
	for name, withRds := range map[string]bool{"with an Rds": true, "without an Rds": false} {
		inBubble(t, name, func(t *testing.T) {
			w := newCloudWorld(t, withRds)
			c := w.startStorageAlarm(t)
			accepts := c.options.Cloud
			c.options.Cloud = changer{accepts, func(context.Context, v1alpha1.Intent) (string, error) {
				w.set(func() { w.inst.Status = "MODIFYING" })
				return "", &autopilot.RefusedError{Reason: autopilot.ReasonInstanceBusy, Message: "in MODIFYING"}
			}}
			reasons := make(map[string]bool)
			round := func() {
				w.now = w.now.Add(c.options.Recheck)
				w.mustDecide(t, c)
				for _, d := range w.rap().Status.Decisions {
					reasons[d.Reason] = true
				}
			}
			for range 20 { // ten minutes
				round()
				if p := w.rap().Status.Pending; p == nil || p.JobTime != nil || p.JobID != "" {
					t.Fatalf("pending %+v", p)
				}
			}
			if _, normal := w.countEvents(string(autopilot.ActionGrowVolume)); normal > 0 || reasons[string(autopilot.ReasonAlarmInForce)] || reasons[string(autopilot.ReasonStalled)] {
				t.Errorf("told as done: %v, %+v", reasons, w.events)
			}
			c.options.Cloud = accepts
			w.set(func() { w.inst.Status, w.inst.Flavor = autopilot.StatusActive, "rds.mysql.n1.xlarge.4" })
			round()
			if _, normal := w.countEvents(string(autopilot.ActionGrowVolume)); normal != 1 || !slices.Equal(w.begun, []string{"110"}) {
				t.Errorf("begun %v, %d events, decisions %+v", w.begun, normal, w.rap().Status.Decisions)
			}
		})
	}
}
