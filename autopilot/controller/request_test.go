// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

// changer is a cloud that answers to the request for a change as the test says.
type changer struct {
	Cloud
	change func(context.Context, v1alpha1.Intent) (string, error)
}

func (c changer) Change(ctx context.Context, _ string, i v1alpha1.Intent) (string, error) {
	return c.change(ctx, i)
}

// busyCPU is an armed database that needs a larger flavor, inside a window of an hour.
func busyCPU(t *testing.T, apply v1alpha1.Apply) (*world, *Controller) {
	t.Helper()
	w := newWorld(t)
	if apply == v1alpha1.ApplyCloud {
		w = newCloudWorld(t, true)
	}
	c := w.process()
	w.settle(t, c)
	w.changeRap(func(rap *v1alpha1.RdsAutopilot) {
		rap.Spec.Flavor.Window = &v1alpha1.Window{Start: "12:00", End: "13:00", TimeZone: "UTC"}
	})
	w.now = w.now.Add(15 * time.Minute)
	w.cpu = 95
	w.alarm(v1alpha1.MetricCPU, true)
	return w, c
}

// inBubble is a subtest in a bubble of its own.
func inBubble(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) { level.InBubble(t, test) })
}

// A round waits for other systems between the decision and the request. A restart must not begin after the window.
func TestNothingIsRequestedAfterTheWindowHasClosed(t *testing.T) {
	t.Run("while the intent is stored", func(t *testing.T) {
		for _, apply := range []v1alpha1.Apply{v1alpha1.ApplyOperator, v1alpha1.ApplyCloud} {
			inBubble(t, string(apply), func(t *testing.T) {
				w, c := busyCPU(t, apply)
				w.kube.SetAdmit(func(write simkube.Write) error {
					if write.New.GetKind() == v1alpha1.Kind {
						w.now = w.now.Add(time.Hour)
					}
					return w.admit(write)
				})
				if _, err := w.decide(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				if len(w.patches)+len(w.begun) > 0 {
					t.Errorf("patched %v, begun %v", w.patches, w.begun)
				}
				if d := w.rap().Status.Decisions; len(d) > 0 && d[0].Reason == string(autopilot.ReasonAlarmInForce) {
					t.Errorf("reported as done: %+v", d[0])
				}
			})
		}
	})
	t.Run("while the cloud is read", func(t *testing.T) {
		level.InBubble(t, func(t *testing.T) {
			w, c := busyCPU(t, v1alpha1.ApplyCloud)
			begin, sent := time.Now(), false
			c.options.Cloud = changer{c.options.Cloud, func(ctx context.Context, _ v1alpha1.Intent) (string, error) {
				select {
				case <-time.After(2 * time.Hour):
					sent = true
					return "job", nil
				case <-ctx.Done():
					return "", fmt.Errorf("%w: %w", autopilot.ErrNotRequested, ctx.Err())
				}
			}}
			if _, err := w.decide(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); sent || took > time.Hour || took < 30*time.Minute {
				t.Errorf("requested %t after %s", sent, took)
			}
			if d := w.rap().Status.Decisions; len(d) > 0 && d[0].Reason == autopilot.CloudUnreachable {
				t.Errorf("the cloud answers: %+v", d[0])
			}
		})
	})
}

// Another Rds has the name by the time of the request. The former one's instance is nobody's any more.
func TestTheCloudIsNotAskedForAReplacedRds(t *testing.T) {
	for name, replace := range map[string]func(*world){
		"another instance": func(w *world) { w.changeRds(func(rds *otcv1.Rds) { rds.Status.ID = "in02" }) },
		"autopilot false":  func(w *world) { w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = new(false) }) },
		"another Rds": func(w *world) {
			rds := w.rds()
			w.remove(w.rdss())
			rds.ObjectMeta = metav1.ObjectMeta{Name: database.Name}
			w.create(w.rdss(), otcv1.Kind, rds)
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newCloudWorld(t, true)
			c := w.startStorageAlarm(t)
			w.changeRds(func(rds *otcv1.Rds) { rds.Spec.VolumeSize = 110 }) // so no patch finds the difference
			w.duringCloud = func() { w.duringCloud = nil; replace(w) }
			if _, err := w.decide(t.Context(), c); err != nil && !errors.Is(err, autopilot.ErrConflict) {
				t.Fatal(err)
			}
			if len(w.begun) > 0 {
				t.Errorf("the cloud has begun %v", w.begun)
			}
		})
	}
}

// The leader writes the status in every round. A round for each of these writes would be a loop.
func TestOwnStatusWriteEnqueuesNothing(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		c := newWorld(t).process()
		c.queues = newQueues(c.decideMarks)
		defer c.queues.shutDown()
		old := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: database.Namespace, Name: database.Name, UID: "1", ResourceVersion: "1"}}
		own := old.DeepCopy()
		own.ResourceVersion = "2"
		own.Status.Pending = &v1alpha1.Intent{Kind: v1alpha1.KindVolume, From: "100", To: "110"}
		own.Status.Decisions = []v1alpha1.DecisionRecord{{Reason: "AlarmInForce"}}
		if c.AutopilotChanged(old, own); c.queues.decide.Len() > 0 {
			t.Error("our own write starts a round")
		}
		news := own.DeepCopy()
		news.ResourceVersion = "3"
		news.Status.Intake.Signals = []v1alpha1.Signal{{MessageID: "1"}}
		if c.AutopilotChanged(own, news); c.queues.decide.Len() != 1 {
			t.Error("a signal starts no round")
		}
	})
}

// Turned off and on again, the change in progress is still ours: it counts for cooldown and budget, and has its place.
func TestChangeInProgressOutlivesOff(t *testing.T) {
	for _, apply := range []v1alpha1.Apply{v1alpha1.ApplyOperator, v1alpha1.ApplyCloud} {
		inBubble(t, string(apply), func(t *testing.T) {
			w, c := busyCPU(t, apply)
			if _, err := w.decide(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			set := func(m v1alpha1.Mode) {
				w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Mode = m })
				w.settle(t, c)
			}
			set(v1alpha1.ModeOff)
			if w.topics != 0 || w.rap().Status.Pending == nil {
				t.Fatalf("%d topics, pending %+v", w.topics, w.rap().Status.Pending)
			}
			if c.limiter.reserve(Key{"other", "db"}, 1, w.now) {
				t.Error("its place is free")
			}
			if apply == v1alpha1.ApplyCloud {
				w.endJobs()
			} else {
				w.operate()
			}
			set(v1alpha1.ModeAuto)
			if ch := w.rap().Status.Changes; len(ch) != 1 || ch[0].By != v1alpha1.ByAutopilot || ch[0].Outcome != v1alpha1.OutcomeCompleted || w.rap().Status.Pending != nil {
				t.Errorf("changes %+v, pending %+v", ch, w.rap().Status.Pending)
			}
		})
	}
}

// Refused by the cloud for hours, then accepted: its place counts from then.
func TestRefusedFlavorHoldsItsPlaceOnceItHasStarted(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w, c := busyCPU(t, v1alpha1.ApplyCloud)
		w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Flavor.Window = nil })
		accepts := c.options.Cloud
		c.options.Cloud = changer{accepts, func(context.Context, v1alpha1.Intent) (string, error) {
			return "", &autopilot.RefusedError{Reason: autopilot.ReasonCloudRefused, Message: "no changes on Sundays"}
		}}
		for range 9 {
			if _, err := w.decide(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			w.now = w.now.Add(16 * time.Minute)
		}
		other := Key{"other", "db"}
		if !c.limiter.reserve(other, 1, w.now) {
			t.Error("a refused flavor takes the place of others")
		}
		c.limiter.release(other)
		c.options.Cloud = accepts
		w.now = w.now.Add(time.Minute)
		w.alarm(v1alpha1.MetricCPU, true)
		if _, err := w.decide(t.Context(), c); err != nil || !slices.Equal(w.begun, []string{"rds.mysql.n1.xlarge.4"}) {
			t.Fatalf("begun %v: %v", w.begun, err)
		}
		synctest.Wait()
		w.now = w.now.Add(2 * time.Minute)
		if c.limiter.reserve(other, 1, w.now) {
			t.Error("its place is free while it changes")
		}
	})
}

// An operator may act on the patch of the Rds before the status shows it, so the place is held even if the cloud is busy.
func TestPatchedFlavorHoldsItsPlace(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w, c := busyCPU(t, v1alpha1.ApplyCloud)
		c.options.Cloud = changer{c.options.Cloud, func(context.Context, v1alpha1.Intent) (string, error) {
			return "", &autopilot.RefusedError{Reason: autopilot.ReasonInstanceBusy, Message: "the operator was faster"}
		}}
		if _, err := w.decide(t.Context(), c); err != nil || len(w.patches) != 1 {
			t.Fatalf("patched %v: %v", w.patches, err)
		}
		synctest.Wait()
		other := Key{"other", "db"}
		if c.limiter.reserve(other, 1, w.now) {
			t.Fatal("its place is free")
		}
		w.inst.Status = "MODIFYING"
		w.now = w.now.Add(time.Minute)
		if _, err := w.decide(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if w.now = w.now.Add(2 * time.Minute); c.limiter.reserve(other, 1, w.now) {
			t.Error("its place is free while the operator changes it")
		}
	})
}
