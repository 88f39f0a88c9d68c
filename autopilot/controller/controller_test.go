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

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

// look is one round of deciding and, after it, one of arming.
func (w *world) look(ctx context.Context, c *Controller) (again time.Duration, err error) {
	if again, err = w.decide(ctx, c); errors.Is(err, errCrash) {
		return again, err
	}
	armAgain, armErr := c.arm(ctx, database)
	if again == 0 || armAgain > 0 && armAgain < again {
		again = armAgain
	}
	return again, errors.Join(err, armErr)
}

// decide is a round on caches that are up to date.
func (w *world) decide(ctx context.Context, c *Controller) (again time.Duration, err error) {
	synctest.Wait()
	return c.reconcile(ctx, database)
}

// settle runs rounds until nothing is left to do at once.
func (w *world) settle(t *testing.T, c *Controller) {
	t.Helper()
	for range 8 {
		w.now = w.now.Add(time.Minute)
		if _, err := w.look(t.Context(), c); err != nil && !errors.Is(err, autopilot.ErrConflict) {
			t.Fatalf("round: %v", err)
		}
	}
}

// operate lets the operator apply the Rds to the cloud.
func (w *world) operate() {
	wanted := w.rds().Spec
	w.inst.VolumeGB, w.inst.Flavor = max(w.inst.VolumeGB, int(wanted.VolumeSize)), wanted.FlavorRef
}

func (w *world) armed() bool {
	rap := w.rap()
	return rap != nil && meta.IsStatusConditionTrue(rap.Status.Conditions, v1alpha1.ConditionArmed)
}

func (w *world) alarm(m v1alpha1.Metric, on bool) {
	state := v1alpha1.StateOK
	if on {
		state = v1alpha1.StateAlarm
	}
	w.state["al-"+string(m)] = AlarmState{state, w.now}
}

func TestAnAlarmGrowsTheVolumeOnce(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		if !w.armed() || w.topics != 1 {
			t.Fatalf("not armed: %+v", w.rap())
		}
		w.usedGB = 93.1
		w.alarm(v1alpha1.MetricStorage, true)
		w.names = nil
		w.settle(t, c)
		if intent, patch := slices.Index(w.names, "status"), slices.Index(w.names, "patch rdss"); intent < 0 || patch < intent {
			t.Errorf("steps %v, want the intent stored before the patch", w.names)
		}
		if got := w.rap().Status.Pending; got == nil || got.To != "110" {
			t.Errorf("pending %+v", got)
		}
		w.operate()
		w.settle(t, c)
		w.alarm(v1alpha1.MetricStorage, false)
		w.settle(t, c)
		if !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("patches %v, want one to 110", w.patches)
		}
		if ch := w.rap().Status.Changes; len(ch) != 1 || ch[0].Outcome != v1alpha1.OutcomeCompleted || ch[0].By != v1alpha1.ByAutopilot || w.rap().Status.Pending != nil {
			t.Errorf("changes %+v, pending %+v", ch, w.rap().Status.Pending)
		}
		if n := testutil.ToFloat64(c.meters.decisions.WithLabelValues("storage", "GrowVolume", "AlarmInForce")); n != 1 {
			t.Errorf("%g decisions counted, want 1", n)
		}
		if !slices.ContainsFunc(w.events, func(e autopilot.Event) bool { return e.Reason == "GrowVolume" && !e.Warning }) {
			t.Errorf("events %+v", w.events)
		}
	})
}

// Wherever the process is killed, before or after the step was applied, the next one ends with one change.
func TestKilledAtEveryStepThereIsOneChange(t *testing.T) {
	for _, tc := range []struct {
		name   string
		metric v1alpha1.Metric
		pace   time.Duration // between two looks: a flavor must have been ACTIVE for 15 minutes
		to     string
	}{{"volume", v1alpha1.MetricStorage, time.Minute, "110"}, {"flavor", v1alpha1.MetricCPU, 4 * time.Minute, "rds.mysql.n1.xlarge.4"}} {
		for _, applied := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, applied %t", tc.name, applied), func(t *testing.T) {
				level.InBubble(t, func(t *testing.T) {
					for step, killed := 1, true; killed; step++ {
						w := newWorld(t)
						w.killAt, w.applied = step, applied
						killed = w.runScenario(tc.metric, tc.pace, w.operate)
						name := fmt.Sprintf("step %d (%v)", step, w.names[min(step, len(w.names))-1])
						if !slices.Equal(w.patches, []string{tc.to}) {
							t.Fatalf("%s: patches %v, want one to %s", name, w.patches, tc.to)
						}
						if ch := w.rap().Status.Changes; len(ch) != 1 || ch[0].Outcome != v1alpha1.OutcomeCompleted || ch[0].By != v1alpha1.ByAutopilot {
							t.Fatalf("%s: changes %+v", name, ch)
						}
						if w.topics != 1 || !w.armed() {
							t.Fatalf("%s: %d topics, armed %t", name, w.topics, w.armed())
						}
						w.stop()
					}
				})
			})
		}
	}
}

// runScenario is a database from birth to its first change, with a process that is killed once. carryOut is who makes what was
// asked for.
func (w *world) runScenario(m v1alpha1.Metric, pace time.Duration, carryOut func()) (killed bool) {
	c := w.process()
	run := func(looks int) {
		for range looks {
			w.now = w.now.Add(pace)
			if _, err := w.look(w.t.Context(), c); errors.Is(err, errCrash) || w.killed {
				killed = true
				w.stop()
				c = w.process()
			}
		}
	}
	run(5)
	w.usedGB, w.cpu = 93, 95
	w.alarm(m, true)
	run(5)
	carryOut()
	w.cpu = 50
	run(3)
	w.alarm(m, false)
	run(2)
	return killed
}

func TestFalseRemovesEverythingAndTheAutopilotStays(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		off := false
		w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = &off })
		w.settle(t, c)
		if w.topics != 0 || w.rap() == nil || len(w.rap().Finalizers) != 0 || w.armed() || w.rap().Status.Alarms.TopicURN != "" {
			t.Fatalf("%d topics, autopilot %+v", w.topics, w.rap())
		}
		w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = nil }) // absent says nothing: what was said last stays
		w.settle(t, c)
		if w.topics != 0 || w.armed() {
			t.Errorf("%d topics, armed %t, after the operator dropped the field", w.topics, w.armed())
		}
		on := true
		w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = &on })
		w.settle(t, c)
		if w.topics != 1 || len(w.rap().Finalizers) != 1 || !w.armed() {
			t.Errorf("%d topics, finalizers %v after true", w.topics, w.rap().Finalizers)
		}
	})
}

// The archived operator writes the object back without the field before anybody looks.
func TestAWordThatTheOperatorDropsIsHeard(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		for _, on := range []bool{true, false} {
			w := newWorld(t)
			if on {
				w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = nil })
			}
			c, follower := w.process(), w.process()
			say := func(word *bool) { w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = word }) }
			if !on {
				w.settle(t, c) // it says true
			}
			say(&on)
			say(nil)
			w.settle(t, follower) // which has become the leader
			if w.armed() != on {
				t.Fatalf("armed %t after a passing %t", w.armed(), on)
			}
			if !on {
				continue
			}
			// Once it is in the status nobody remembers it: an autopilot that a person deletes is not made again.
			say(&on)
			say(nil)
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Finalizers = nil })
			w.remove(w.raps())
			for _, p := range []*Controller{c, follower} {
				if _, err := w.look(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			if w.rap() != nil {
				t.Error("it was made again although the field is gone")
			}
		}
	})
}

func TestAnRdsThatIsGoneTakesOurAutopilotWithIt(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		for _, tc := range []struct {
			name   string
			person bool
			stays  bool
		}{{"made by us", false, false}, {"made by a person", true, true}} {
			w := newWorld(t)
			c := w.process()
			w.settle(t, c)
			if tc.person {
				w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.OwnerReferences = nil })
			}
			w.remove(w.rdss())
			for range 4 {
				if _, err := w.look(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			if w.topics != 0 || (w.rap() != nil) != tc.stays {
				t.Errorf("%s: %d topics, autopilot %+v", tc.name, w.topics, w.rap())
			}
		}
	})
}

func TestDeletingTheAutopilotWaitsForTheCloud(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		w.remove(w.raps())
		w.gone = true
		if _, err := w.look(t.Context(), c); err == nil {
			t.Fatal("no error while the cloud is away")
		}
		if w.rap() == nil || w.armed() {
			t.Fatalf("autopilot %+v, want it held and not armed", w.rap())
		}
		w.gone = false
		if _, err := w.look(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if w.topics != 0 || w.rap() != nil {
			t.Errorf("%d topics, autopilot %+v", w.topics, w.rap())
		}
	})
}

func TestACloudThatIsAwayIsSaid(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		w.gone = true
		if _, err := w.look(t.Context(), c); err == nil {
			t.Error("no error: nobody would come back")
		}
		if cond := meta.FindStatusCondition(w.rap().Status.Conditions, v1alpha1.ConditionArmed); cond == nil || cond.Reason != autopilot.CloudUnreachable {
			t.Errorf("condition %+v", cond)
		}
	})
}

func TestRecommendPatchesNothing(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		c.options.Mode = v1alpha1.ModeRecommend // --mode is the upper bound
		w.usedGB = 92
		w.alarm(v1alpha1.MetricStorage, true)
		w.settle(t, c)
		d := w.rap().Status.Decisions
		if len(w.patches) != 0 || len(d) == 0 || d[0].Action != "GrowVolume" || d[0].Reason != "Recommend" || d[0].To != "110" {
			t.Errorf("patches %v, decisions %+v", w.patches, d)
		}
	})
}

func TestAfterGrowthTheRuleIsRewritten(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.changeRds(func(rds *otcv1.Rds) { rds.Spec.VolumeSize = 40 })
		w.inst.VolumeGB, w.usedGB = 40, 20
		c := w.process()
		w.settle(t, c)
		threshold := func() int32 { return w.rap().Status.Alarms.Rules[0].ThresholdPercent }
		if threshold() != 75 {
			t.Fatalf("threshold %d %% for 40 GB", threshold())
		}
		w.usedGB = 31
		w.alarm(v1alpha1.MetricStorage, true)
		w.settle(t, c)
		w.operate()
		if _, err := w.look(t.Context(), c); err != nil { // at once, not with the next sweep
			t.Fatal(err)
		}
		if threshold() != 77 {
			t.Errorf("threshold %d %% for 50 GB", threshold())
		}
	})
}

// running is the loop at work, on the bubble's clock, once the database is armed.
func running(t *testing.T) (*world, *Controller) {
	t.Helper()
	w := newWorld(t)
	w.now = time.Now()
	c := w.process()
	c.options.Now, c.options.Chance = time.Now, func() float64 { return 0.5 } // a sweep each five minutes
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { c.Run(ctx); close(ended) }()
	t.Cleanup(func() { stop(); <-ended })
	w.pass(21 * time.Minute)
	if !w.armed() {
		t.Fatal("not armed, though nobody told of a change: the sweep should have looked")
	}
	return w, c
}

// set changes the world beside a loop at work, or looks at it.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// pass lets that much of the bubble's time pass.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestTheLoopSweepsAndEndsWithItsContext(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		_, c := running(t)
		if last := testutil.ToFloat64(c.meters.lastSweep); float64(time.Now().Unix())-last > 6*60 {
			t.Errorf("the last sweep was %g s ago", float64(time.Now().Unix())-last)
		}
	})
}

func TestTheSweepSaysThatTheCloudIsAway(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w, _ := running(t)
		w.set(func() { w.gone = true })
		w.pass(10 * time.Minute)
		if cond := meta.FindStatusCondition(w.rap().Status.Conditions, v1alpha1.ConditionArmed); cond.Reason != autopilot.CloudUnreachable {
			t.Errorf("condition %+v", cond)
		}
	})
}

// Our own arming may write while a decision waits for the cloud. That is no news, so no event asks for another decision.
func TestAfterAConflictItIsDecidedAnew(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w, _ := running(t)
		w.set(func() {
			w.now, w.usedGB = time.Now(), 93
			w.alarm(v1alpha1.MetricStorage, true)
			w.duringCloud = func() {
				w.set(func() { w.duringCloud = nil })
				w.writeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Status.ObservedGeneration++ })
			}
		})
		w.changeRds(func(rds *otcv1.Rds) { rds.Status.Status = "ACTIVE" }) // has it looked at
		w.pass(time.Minute)
		w.set(func() {
			if !slices.Equal(w.patches, []string{"110"}) {
				t.Errorf("patches %v after a minute, want one to 110", w.patches)
			}
		})
	})
}

func TestAFullInstanceAtItsCapIsNotLookedAtAllTheTime(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Storage.MaxGB = 100 })
		w.inst.Status, w.usedGB = autopilot.StatusStorageFull, 97
		w.alarm(v1alpha1.MetricStorage, true)
		w.settle(t, c)
		if again, err := w.look(t.Context(), c); again != 0 || err != nil {
			t.Errorf("looked at again after %s (%v), want with the next event or sweep", again, err)
		}
		w.inst.Status = "MODIFYING"
		if again, err := w.look(t.Context(), c); again != 30*time.Second || err != nil {
			t.Errorf("a busy one is looked at again after %s (%v), want 30s", again, err)
		}
	})
}
