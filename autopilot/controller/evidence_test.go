// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

// A full volume grows whatever happens to the measurements of CPU and memory, and without waiting for them.
func TestOtherMetricsDelayNoStorage(t *testing.T) {
	for name, spoil := range map[string]func(*world){
		"CPU cannot be read":     func(w *world) { w.unreadable = map[v1alpha1.Metric]bool{v1alpha1.MetricCPU: true} },
		"flavors cannot be read": func(w *world) { w.noFlavors = true },
		"all is well":            func(*world) {},
	} {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				w, c := full(t)
				w.cpu = 99
				w.alarm(v1alpha1.MetricCPU, true)
				spoil(w)
				w.measured = nil
				if _, err := w.decide(t.Context(), c); err != nil {
					t.Errorf("storage waits for another metric: %v", err)
				}
				if !slices.Equal(w.patches, []string{"110"}) || slices.Contains(w.measured, v1alpha1.MetricCPU) {
					t.Errorf("patches %v after measurements of %v; want storage alone", w.patches, w.measured)
				}
				w.unreadable, w.noFlavors = nil, false
				again, err := w.decide(t.Context(), c)
				if err != nil || again > c.options.Recheck || !slices.Contains(w.measured, v1alpha1.MetricCPU) {
					t.Errorf("CPU comes next: %s, %v, measured %v", again, err, w.measured)
				}
			})
		})
	}
}

// Each metric has its own answer: one that cannot be read does not take the others' evidence away.
func TestUnreadableMetricLeavesTheOthersTheirEvidence(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		w.settle(t, c)
		w.settle(t, c) // ACTIVE for more than 15 minutes
		w.cpu = 99
		w.alarm(v1alpha1.MetricCPU, true)
		w.alarm(v1alpha1.MetricMemory, true)
		w.unreadable = map[v1alpha1.Metric]bool{v1alpha1.MetricMemory: true}
		if _, err := w.decide(t.Context(), c); err == nil {
			t.Error("the failure is not reported")
		}
		if !slices.Equal(w.patches, []string{"rds.mysql.n1.xlarge.4"}) {
			t.Errorf("patches %v; want a larger flavor for CPU", w.patches)
		}
	})
}

// sweepOnce is a round of a sweep.
func (w *world) sweepOnce(t *testing.T, c *Controller) time.Duration {
	t.Helper()
	c.decideMarks.setSweep(database, w.now)
	again, err := w.decide(t.Context(), c)
	if err != nil && !errors.Is(err, autopilot.ErrConflict) {
		t.Fatal(err)
	}
	return again
}

func TestUsedSpaceIsCheckedWithoutAStorageRule(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.noRules = true
		c := w.process()
		w.settle(t, c)
		if w.armed() || len(w.rap().Status.Alarms.Rules) > 0 {
			t.Fatalf("armed without rules: %+v", w.rap().Status.Alarms)
		}
		w.usedGB = 93
		begin := w.now
		again := w.sweepOnce(t, c)
		if again != 15*time.Minute || len(w.patches) > 0 {
			t.Errorf("checked again in %s, patches %v; want a check once the rule should have raised its alarm", again, w.patches)
		}
		w.now = begin.Add(again)
		if _, err := w.decide(t.Context(), c); err != nil || !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("patches %v, %v", w.patches, err)
		}
		if warnings, _ := w.countEvents(string(autopilot.ReasonRuleSilent)); warnings != 1 {
			t.Errorf("%d warnings", warnings)
		}
	})
}

// Nothing but a lower value starts the count of a full volume again: neither failed reads, nor retries, nor the
// operator's writes to the Rds, nor a new leader.
func TestCountOfAFullVolumeGoesOn(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		w.usedGB = 92
		begin := w.now
		w.sweepOnce(t, c)
		since := w.rap().Status.OverThresholdSince
		if since == nil || !since.Time.Equal(begin) {
			t.Fatalf("over the threshold since %v, want %v", since, begin)
		}
		w.unreadable = map[v1alpha1.Metric]bool{v1alpha1.MetricStorage: true}
		for i := range 10 {
			w.now = w.now.Add(time.Minute)
			switch i % 3 {
			case 0:
				c.decideMarks.setSweep(database, w.now)
			case 1:
				w.changeRds(func(rds *otcv1.Rds) { rds.Status.Status = time.Now().String() + w.now.String() })
			case 2:
				w.stop()
				c = w.process()
			}
			if _, err := w.decide(t.Context(), c); err == nil {
				t.Error("the failed read is not reported")
			}
		}
		w.unreadable, w.now = nil, begin.Add(15*time.Minute)
		if _, err := w.decide(t.Context(), c); err != nil || !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("patches %v, %v; %+v", w.patches, err, w.rap().Status.OverThresholdSince)
		}
		w.operate()
		w.settle(t, c)
		if since := w.rap().Status.OverThresholdSince; since != nil {
			t.Errorf("after the growth it is still over its threshold since %s", since)
		}
	})
}

// Events come all the time where an operator writes its status often. The sweep still reads the used space.
func TestSweepReadsTheUsedSpaceBesideNews(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		w.usedGB = 95
		c.decideMarks.setNews(database)
		w.sweepOnce(t, c)
		if w.rap().Status.OverThresholdSince == nil {
			t.Error("the sweep has not read the used space")
		}
	})
}

// A status that a clock ahead of ours has written is corrected by the first round.
func TestRoundClampsTimesOfAClockThatWasAhead(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		ahead := metav1.NewTime(w.now.Add(5 * time.Hour))
		w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Status.OverThresholdSince = &ahead })
		w.usedGB = 93
		if _, err := w.decide(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if since := w.rap().Status.OverThresholdSince; since == nil || since.After(w.now) {
			t.Errorf("over the threshold since %v, and it is %s", since, w.now)
		}
	})
}

// The cloud keeps a database read-only until 87 % are used. A clean-up to 88.4 %, below the threshold, is not enough.
func TestReadOnlyDatabaseGrowsUntilItIsWritable(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.changeRds(func(rds *otcv1.Rds) { rds.Spec.VolumeSize = 200 })
		w.inst.VolumeGB, w.usedGB = 200, 182
		c := w.process()
		w.settle(t, c)
		w.alarm(v1alpha1.MetricStorage, true)
		w.settle(t, c)
		w.usedGB = 194.5 // a burst before the growth arrives
		w.settle(t, c)
		since := w.rap().Status.ReadOnly
		if since == nil {
			t.Fatal("the status does not say that the database is read-only")
		}
		w.operate()
		w.usedGB = 185.6
		w.alarm(v1alpha1.MetricStorage, false)
		w.settle(t, c)
		if s := w.rap().Status; !slices.Equal(w.patches, []string{"210", "240"}) || s.ReadOnly == nil || !s.ReadOnly.SinceTime.Equal(&since.SinceTime) {
			t.Errorf("patches %v, read-only %+v", w.patches, s.ReadOnly)
		}
		w.operate()
		w.settle(t, c)
		if warnings, _ := w.countEvents(string(autopilot.ReasonReadOnly)); w.rap().Status.ReadOnly != nil || len(w.patches) != 2 || warnings != 1 {
			t.Errorf("patches %v, read-only %+v, %d warnings", w.patches, w.rap().Status.ReadOnly, warnings)
		}
	})
}

type panickingReader struct{}

func (panickingReader) Evidence(context.Context, autopilot.Instance, EvidenceRequest) (autopilot.Evidence, error) {
	panic("broken")
}

func TestReadEvidenceReturnsThePanicOfAMeasurement(t *testing.T) {
	found, failed := readEvidence(t.Context(), panickingReader{}, autopilot.Instance{}, []EvidenceRequest{{Metric: v1alpha1.MetricCPU}})
	if _, ok := errors.AsType[*autopilot.PanicError](failed[v1alpha1.MetricCPU]); !ok || len(found) > 0 {
		t.Errorf("found %v, failed %v; want the panic as its error", found, failed)
	}
}

// The cloud answers, so an engine that this version does not know is no failure, and costs no request for evidence.
func TestUnknownEngineIsNamed(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.inst.Engine = "Oracle"
		c := w.process()
		w.settle(t, c)
		w.sweepOnce(t, c)
		armed := meta.FindStatusCondition(w.rap().Status.Conditions, v1alpha1.ConditionArmed)
		if armed == nil || armed.Reason != string(autopilot.ReasonInstanceUnknown) || !strings.Contains(armed.Message, "engine Oracle") {
			t.Errorf("armed: %+v", armed)
		}
		if len(w.measured) > 0 || w.topics > 0 {
			t.Errorf("measured %v, %d topics; want none", w.measured, w.topics)
		}
	})
}

// A list that leaves out the size of a volume changes nothing, neither the rules nor the record of changes.
func TestMissingVolumeSizeChangesNothing(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		before := w.rap().Status
		w.inst.VolumeGB = 0
		w.usedGB = 93.1
		w.alarm(v1alpha1.MetricStorage, true)
		w.settle(t, c)
		w.inst.VolumeGB = 100
		w.settle(t, c)
		s := w.rap().Status
		sameThreshold := func(a, b v1alpha1.Rule) bool { return a.ThresholdPercent == b.ThresholdPercent }
		if !slices.EqualFunc(before.Alarms.Rules, s.Alarms.Rules, sameThreshold) || len(s.Changes) > 0 || !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("rules %+v, changes %+v, patches %v", s.Alarms.Rules, s.Changes, w.patches)
		}
	})
}
