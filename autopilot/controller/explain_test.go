// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// fullOfWAL has 41 GB of WAL that an inactive slot keeps.
func fullOfWAL(now time.Time) autopilot.Series {
	s := autopilot.Series{}
	for metric, values := range map[string][2]float64{
		"rds048_disk_used_size": {50, 93}, "rds040_transaction_logs_usage": {1024, 41 * 1024},
		"rds045_oldest_replication_slot_lag": {0, 40 * 1024}, "inactive_logical_replication_slot": {1, 1},
	} {
		s[metric] = []autopilot.Point{{Time: now.Add(-time.Hour), Value: values[0]}, {Time: now, Value: values[1]}}
	}
	return s
}

// lead lets a controller enqueue, and its queues are empty.
func lead(t *testing.T, c *Controller) {
	t.Helper()
	c.queues = newQueues(c.decideMarks)
	t.Cleanup(c.queues.shutDown)
}

// looks makes the looks that are enqueued, and returns how many there were.
func (w *world) looks(t *testing.T, c *Controller) (n int) {
	t.Helper()
	for ; c.queues.explain.Len() > 0; n++ {
		key, _ := c.queues.explain.Get()
		if _, err := c.explain(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		c.queues.explain.Done(key)
	}
	return n
}

// mustDecide is a round that must succeed.
func (w *world) mustDecide(t *testing.T, c *Controller) {
	t.Helper()
	if _, err := w.decide(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// fullOfWALWorld returns a database of PostgreSQL whose WAL has raised the storage alarm, and its leader.
func fullOfWALWorld(t *testing.T) (*world, *Controller) {
	t.Helper()
	w := newWorld(t)
	w.inst.Engine = "PostgreSQL"
	c := w.startStorageAlarm(t)
	w.series = fullOfWAL(w.now)
	lead(t, c)
	return w, c
}

func TestCauseIsReadAfterTheGrowthWasRequested(t *testing.T) {
	inBubble(t, "PostgreSQL", func(t *testing.T) {
		w, c := fullOfWALWorld(t)
		w.mustDecide(t, c)
		if len(w.patches) != 1 || len(w.seriesRead) > 0 {
			t.Fatalf("patches %v after %d reads; want one without a read", w.patches, len(w.seriesRead))
		}
		if n := w.looks(t, c); n != 1 || len(w.seriesRead) != 1 || w.seriesRead[0].Dimension != "rds_cluster_id:in01" {
			t.Fatalf("%d looks, read %+v", n, w.seriesRead)
		}
		s := w.rap().Status
		if s.Insight == nil || s.Insight.Cause == nil || s.Insight.Cause.Name != v1alpha1.CauseReplicationSlot || s.Insight.Cap != nil {
			t.Fatalf("insight %+v; want the slot, and no date of the cap before the volume has grown", s.Insight)
		}
		if strings.Contains(s.Decisions[0].Message, "WAL") {
			t.Errorf("the decision waited for its cause: %q", s.Decisions[0].Message)
		}
	})
	inBubble(t, "MySQL", func(t *testing.T) {
		w := newWorld(t)
		c := w.startStorageAlarm(t)
		lead(t, c)
		w.mustDecide(t, c)
		w.looks(t, c)
		cause := w.rap().Status.Insight.Cause
		if len(w.seriesRead) > 0 || cause == nil || cause.Name != v1alpha1.CauseUnknown || cause.FailedTime != nil {
			t.Errorf("cause %+v after %d reads; this engine has no metric of it", cause, len(w.seriesRead))
		}
	})
}

// The warning is in the status that is stored first, so neither a later round nor another leader repeats it.
func TestCauseNotDataIsWarnedOnceByTheNextRound(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		w, c := fullOfWALWorld(t)
		w.mustDecide(t, c)
		w.looks(t, c)
		warnings := func() int { n, _ := w.countEvents(string(autopilot.ReasonCauseNotData)); return n }
		if warnings() > 0 {
			t.Error("the look itself has warned")
		}
		w.mustDecide(t, c)
		if warnings() != 1 {
			t.Fatalf("%d warnings", warnings())
		}
		w.mustDecide(t, c)
		w.mustDecide(t, w.process())
		if warnings() != 1 || len(w.seriesRead) != 1 {
			t.Errorf("%d warnings, %d reads", warnings(), len(w.seriesRead))
		}
	})
}

func TestCapSoonIsWarnedOnceByTheNextRound(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		lead(t, c)
		w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Storage.MaxGB = 100 })
		w.usedGB = 80
		for h := 14 * 24; h >= 0; h-- { // 5 GB a day
			w.history = append(w.history, autopilot.Point{Time: w.now.Add(-time.Duration(h) * time.Hour), Value: 85 - float64(h)*5/24})
		}
		warnings := func() int { n, _ := w.countEvents(string(autopilot.ReasonCapSoon)); return n }
		w.sweepOnce(t, c)
		if n := w.looks(t, c); n != 1 || w.capReads != 1 || warnings() > 0 {
			t.Fatalf("%d looks, %d reads, %d warnings", n, w.capReads, warnings())
		}
		for range 3 {
			w.sweepOnce(t, c)
		}
		if w.looks(t, c) > 0 || warnings() != 1 {
			t.Errorf("%d warnings, another %d looks: %+v", warnings(), w.looks(t, c), w.rap().Status.Insight.Cap)
		}
	})
}

// loadOf returns averages of the hour before a time, with sessions that wait for locks.
func loadOf(end time.Time, cpu, waits float64) autopilot.Series {
	s := autopilot.Series{}
	for age := time.Hour; age > 0; age -= 5 * time.Minute {
		at := end.Add(-age)
		s["rds001_cpu_util"] = append(s["rds001_cpu_util"], autopilot.Point{Time: at, Value: cpu})
		s["rds_innodb_row_lock_current_waits"] = append(s["rds_innodb_row_lock_current_waits"], autopilot.Point{Time: at, Value: waits})
	}
	return s
}

func TestLoadIsReadAfterTheFlavorWasRequestedAndAfterItsFirstHour(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		w, c := busyCPU(t, v1alpha1.ApplyOperator)
		lead(t, c)
		w.series = loadOf(w.now, 95, 40)
		w.mustDecide(t, c)
		if len(w.patches) != 1 || len(w.seriesRead) > 0 {
			t.Fatalf("patches %v after %d reads; want one without a read", w.patches, len(w.seriesRead))
		}
		if n := w.looks(t, c); n != 1 || len(w.seriesRead) != 1 {
			t.Fatalf("%d looks, %d reads", n, len(w.seriesRead))
		}
		f := w.rap().Status.Insight.Flavor
		if f == nil || f.To != "rds.mysql.n1.xlarge.4" || f.Before == nil || f.Before.CPUPercent != "95.0" || f.After != nil ||
			len(f.Findings) != 1 || f.Findings[0].Reason != string(autopilot.ReasonLockBound) {
			t.Fatalf("insight %+v", f)
		}
		w.operate()
		w.alarm(v1alpha1.MetricCPU, false)
		w.sweepOnce(t, c)
		completed := w.now
		for range 15 { // the hour and Cloud Eye's delay end with the 14th
			w.now = w.now.Add(5 * time.Minute)
			w.series = loadOf(completed.Add(time.Hour), 48, 0)
			w.series["rds001_cpu_util"] = append(w.series["rds001_cpu_util"], // of the second hour
				autopilot.Point{Time: completed.Add(65 * time.Minute), Value: 99})
			w.sweepOnce(t, c)
			w.looks(t, c)
		}
		if f = w.rap().Status.Insight.Flavor; f.Before.CPUPercent != "95.0" || f.After == nil || f.After.CPUPercent != "48.0" || len(w.seriesRead) != 2 {
			t.Errorf("insight %+v after %d reads", f, len(w.seriesRead))
		}
	})
}

// A person makes the database smaller after a week, and it needs the same flavor again.
func TestLoadIsThatOfTheLastRequestForAFlavor(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		w, c := busyCPU(t, v1alpha1.ApplyOperator)
		lead(t, c)
		request := func(cpu float64, load string) {
			t.Helper()
			w.cpu = cpu
			w.alarm(v1alpha1.MetricCPU, true)
			w.series = loadOf(w.now, cpu, 0)
			w.mustDecide(t, c)
			w.looks(t, c)
			if f := w.rap().Status.Insight.Flavor; f == nil || f.Before == nil || f.Before.CPUPercent != load || f.After != nil {
				t.Errorf("patches %v, insight %+v; want %s %% before", w.patches, f, load)
			}
		}
		request(95, "95.0")
		w.operate()
		w.alarm(v1alpha1.MetricCPU, false)
		w.mustDecide(t, c)
		w.changeRds(func(rds *otcv1.Rds) { rds.Spec.FlavorRef = "rds.mysql.n1.large.4" })
		w.operate()
		w.now = w.now.Add(8*24*time.Hour - 10*time.Minute)
		for range 2 { // ACTIVE for more than 15 minutes
			w.mustDecide(t, c)
			w.now = w.now.Add(20 * time.Minute)
		}
		request(97, "97.0")
	})
}

// A look that fails is repeated an hour later, and no round before asks for another one.
func TestFailedLookIsRememberedForAnHour(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		w, c := fullOfWALWorld(t)
		w.series = nil
		w.mustDecide(t, c)
		w.looks(t, c)
		cause := w.rap().Status.Insight.Cause
		if cause == nil || cause.Name != v1alpha1.CauseUnknown || cause.FailedTime == nil || !cause.FailedTime.Equal(&w.rap().Status.Insight.LookTime) {
			t.Fatalf("cause %+v", cause)
		}
		w.operate()
		for range 59 {
			w.now = w.now.Add(time.Minute)
			w.sweepOnce(t, c)
			if n := w.looks(t, c); n > 0 {
				t.Fatalf("another look at %s", w.now)
			}
		}
		w.now = w.now.Add(time.Minute)
		w.series = fullOfWAL(w.now)
		w.sweepOnce(t, c)
		if n := w.looks(t, c); n != 1 || len(w.seriesRead) != 2 || w.capReads != 1 {
			t.Errorf("%d looks, %d reads of the cause, %d of the cap", n, len(w.seriesRead), w.capReads)
		}
		if cause = w.rap().Status.Insight.Cause; cause.Name == v1alpha1.CauseUnknown || cause.FailedTime != nil {
			t.Errorf("cause %+v", cause)
		}
	})
}

// endings returns how what was explained loses its meaning.
func endings() map[string]func(*testing.T, *world, *Controller) {
	return map[string]func(*testing.T, *world, *Controller){
		"another instance": func(t *testing.T, w *world, c *Controller) {
			w.changeRds(func(rds *otcv1.Rds) { rds.Status.ID = "in02" })
			w.set(func() { w.inst.ID = "in02" })
			w.mustDecide(t, c)
		},
		"autopilot false": func(t *testing.T, w *world, c *Controller) {
			w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = new(false) })
			if _, err := w.look(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		},
		"mode Off": func(t *testing.T, w *world, c *Controller) {
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Mode = v1alpha1.ModeOff })
			if _, err := w.look(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func TestInsightIsClearedWithItsInstanceAndWhenAutopilotIsOff(t *testing.T) {
	for name, end := range endings() {
		inBubble(t, name, func(t *testing.T) {
			w, c := fullOfWALWorld(t)
			w.mustDecide(t, c)
			w.looks(t, c)
			if w.rap().Status.Insight == nil {
				t.Fatal("nothing is explained")
			}
			end(t, w, c)
			if s := w.rap().Status; s.Insight != nil {
				t.Errorf("insight %+v", s.Insight)
			}
			if n, _ := w.countEvents(string(autopilot.ReasonCauseNotData)); n > 0 {
				t.Error("the cause of the former database is reported")
			}
		})
		inBubble(t, name+", during the look", func(t *testing.T) {
			w, c := fullOfWALWorld(t)
			w.mustDecide(t, c)
			w.onSeries = func(context.Context) { end(t, w, c) }
			w.looks(t, c)
			if s := w.rap().Status; len(w.seriesRead) != 1 || s.Insight != nil && s.Insight.Cause != nil {
				t.Errorf("insight %+v after %d reads", s.Insight, len(w.seriesRead))
			}
		})
	}
}

// A look is stored on top of what a round has stored meanwhile.
func TestLookOverwritesNoStatusThatHasChangedMeanwhile(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		w, c := fullOfWALWorld(t)
		w.mustDecide(t, c)
		w.onSeries = func(context.Context) {
			w.operate()
			w.mustDecide(t, c)
		}
		w.looks(t, c)
		s := w.rap().Status
		if s.Pending != nil || len(s.Changes) != 1 || s.Insight == nil || s.Insight.Cause.Name != v1alpha1.CauseReplicationSlot {
			t.Errorf("pending %+v, changes %+v, insight %+v", s.Pending, s.Changes, s.Insight)
		}
	})
}

// The watch may lag by seconds in a storm. A look on the old status would find nothing to explain, or look twice.
func TestLookReadsTheLiveStatus(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		w, c := fullOfWALWorld(t)
		last, _ := c.options.Kube.Autopilot(database.Namespace, database.Name)
		w.mustDecide(t, c)
		c.options.Kube = stuckAutopilots{c.options.Kube, last}
		w.looks(t, c)
		c.queues.explain.Add(database)
		w.looks(t, c)
		if s := w.rap().Status; len(w.seriesRead) != 1 || w.capReads > 0 || s.Insight == nil || s.Insight.Cause == nil {
			t.Errorf("insight %+v after %d reads of the cause and %d of the cap", s.Insight, len(w.seriesRead), w.capReads)
		}
	})
}

func TestHangingSeriesDelaysNoDecision(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		w, _ := running(t)
		w.pass(time.Hour) // since the look of the first sweep
		hanging := 0
		w.set(func() {
			w.inst.Engine = "PostgreSQL"
			w.onSeries = func(ctx context.Context) {
				w.set(func() { hanging++ })
				<-ctx.Done()
				w.set(func() { hanging-- })
			}
			w.now, w.usedGB = time.Now(), 88
			w.alarm(v1alpha1.MetricStorage, true)
		})
		news := func(status string) {
			w.set(func() { w.now = time.Now() })
			w.changeRds(func(rds *otcv1.Rds) { rds.Status.Status = status })
			w.pass(time.Second)
		}
		news("1")
		w.set(func() {
			if !slices.Equal(w.patches, []string{"110"}) || hanging != 1 {
				t.Fatalf("patches %v, %d looks hang; want both after a second", w.patches, hanging)
			}
			w.inst.VolumeGB = 110
			w.alarm(v1alpha1.MetricStorage, false)
		})
		news("2")
		if s := w.rap().Status; s.Pending != nil || len(s.Changes) != 1 || s.Insight == nil || s.Insight.Cause != nil {
			t.Errorf("pending %+v, changes %+v, insight %+v; want the growth completed while the look hangs", s.Pending, s.Changes, s.Insight)
		}
		w.set(func() {
			if hanging != 1 {
				t.Errorf("%d looks hang", hanging)
			}
		})
		w.pass(seriesLimit)
		if s := w.rap().Status; s.Insight.Cause == nil || s.Insight.Cause.FailedTime == nil {
			t.Errorf("insight %+v; want the failed look in it", s.Insight)
		}
	})
}
