// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

// pending returns our pending change, or nil.
func (w *world) pending() *v1alpha1.Change {
	list := w.rap().Status.Changes
	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.KindVolume, v1alpha1.KindFlavor} {
		if ch, ok := change.Pending(list, kind); ok {
			return &ch
		}
	}
	return nil
}

// checkOneChange checks that the status has one completed change of the autopilot, and none in progress.
func (w *world) checkOneChange() {
	w.t.Helper()
	s := w.rap().Status
	if len(s.Changes) != 1 ||
		s.Changes[0].State != v1alpha1.StateCompleted || s.Changes[0].By != v1alpha1.ByAutopilot {
		w.t.Errorf("changes %+v; want one completed", s.Changes)
	}
}

func TestPatchThatIsRevertedAtOnceIsNotReportedAsDone(t *testing.T) {
	withAlarm(t, func(t *testing.T, w *world, c *Controller) {
		w.reverts = true
		w.mustDecide(c)
		w.checkCondition("reverted", v1alpha1.ConditionContested, metav1.ConditionTrue, string(autopilot.ReasonContested))
		_, events := w.countEvents(string(autopilot.ActionGrowVolume))
		if w.pending() != nil || events > 0 {
			t.Errorf("pending %+v, %d events", w.pending(), events)
		}
	})
}

// The user turns autopilot off, or replaces the database, while the round waits for the cloud.
func TestNothingIsRequestedForATargetThatHasChangedMeanwhile(t *testing.T) {
	changes := map[string]func(*world, *Controller){
		"autopilot false": func(w *world, _ *Controller) { w.setSwitch(new(false)) },
		"autopilot false, and the cache is old": func(w *world, c *Controller) {
			w.setSwitch(new(false))
			c.switches = switchTracker{last: make(map[Key]v1alpha1.Switch)} // the watch event has not come
		},
		"another instance": func(w *world, _ *Controller) {
			w.changeRds(func(rds *otcv1.Rds) { rds.Status.ID = "in02" })
		},
		"another Rds": func(w *world, _ *Controller) {
			w.remove(w.rdss())
			w.createRds()
		},
		"Rds is being deleted": func(w *world, _ *Controller) {
			w.changeRds(func(rds *otcv1.Rds) { rds.Finalizers = []string{"example.com/operator"} })
			w.remove(w.rdss())
		},
	}
	for name, change := range changes {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			c := w.startAlarm(v1alpha1.MetricStorage)
			if strings.Contains(name, "cache") {
				c.options.Kube = oldTargets{c.options.Kube, c.options.Kube.Target(database.Namespace, database.Name)}
			}
			w.onInstance = func() { w.onInstance = nil; change(w, c) }
			if _, err := w.decide(c); err != nil && !errors.Is(err, autopilot.ErrConflict) {
				t.Fatal(err)
			}
			_, events := w.countEvents(string(autopilot.ActionGrowVolume))
			if len(w.patches)+events > 0 {
				t.Errorf("patched %v, %d events", w.patches, events)
			}
		})
	}
}

func TestRoundKeepsPendingChangeWhenCacheHasRdsBeforePatch(t *testing.T) {
	withAlarm(t, func(t *testing.T, w *world, c *Controller) {
		c.options.Kube = oldTargets{c.options.Kube, c.options.Kube.Target(database.Namespace, database.Name)}
		for range 3 {
			w.now = w.now.Add(time.Second)
			w.mustDecide(c)
		}
		s := w.rap().Status
		if p := w.pending(); p == nil || p.To != "110" || len(s.Changes) > 1 || !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("changes %+v, patches %v; want one pending change", s.Changes, w.patches)
		}
	})
}

func TestRoundOnOldAutopilotConflictsAndPatchesNothing(t *testing.T) {
	withAlarm(t, func(t *testing.T, w *world, c *Controller) {
		w.freezeAutopilots(c)
		w.mustDecide(c)
		w.usedGB = 104 // a second decision would go beyond 110 GB
		w.now = w.now.Add(time.Second)
		if _, err := w.decide(c); !errors.Is(err, autopilot.ErrConflict) {
			t.Errorf("%v, want a conflict", err)
		}
		if !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("patches %v, want one", w.patches)
		}
		w.now = w.now.Add(time.Second)
		if _, err := w.decide(c); err != nil {
			t.Errorf("the retry must read the stored version: %v", err)
		}
	})
}

// The stored status prevents that the next leader repeats a warning.
func TestWarningIsEmittedOnceAfterTheStatusHasIt(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Storage.MaxGB = 100 })
		w.statusRefusal = "denied by policy"
		if _, err := w.decide(c); err == nil {
			t.Error("the refusal is not returned")
		}
		if warnings, _ := w.countEvents("CapReached"); warnings > 0 {
			t.Error("warned before the status is stored")
		}
		w.statusRefusal = ""
		w.mustDecide(c)
		w.mustDecide(w.process())
		if warnings, _ := w.countEvents("CapReached"); warnings != 1 {
			t.Errorf("%d warnings", warnings)
		}
	})
}

func TestRoundReturnsWhenToCheckAgain(t *testing.T) {
	withAlarm(t, func(t *testing.T, w *world, c *Controller) {
		if again := w.mustDecide(c); again != c.options.Recheck {
			t.Errorf("a pending change is checked again after %s", again)
		}
		w.apply()
		w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Storage.MaxGB = 110 })
		w.withLock(func() { w.inst.Status, w.usedGB = autopilot.StatusStorageFull, 109 })
		w.settle(c)
		if again := w.mustDecide(c); again != 0 {
			t.Errorf("a full instance at its cap is checked again after %s, want with the next event or sweep", again)
		}
		w.withLock(func() { w.inst.Status = "MODIFYING" })
		if again := w.mustDecide(c); again != c.options.Recheck {
			t.Errorf("a busy instance is checked again after %s", again)
		}
	})
}

// An Rds may have news all the time. Only a sweep reads the used space of a database without an alarm.
func TestSweepReadsTheUsedSpaceBesideNews(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		w.usedGB = 95
		c.decideMarks.setNews(database)
		c.decideMarks.setSweep(database, w.now)
		w.mustDecide(c)
		if w.rap().Status.OverThresholdSince == nil {
			t.Error("the used space was not read")
		}
	})
}

func TestSizesOfAFlavorAreReadAfterStorageHasGrown(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.inst.VCPUs, w.inst.MemoryGB, w.noCatalogue = 0, 0, true
		c := w.startAlarm(v1alpha1.MetricStorage)
		w.settle(c)
		if b := w.rap().Status.Baseline; b == nil || b.VCPUs != 0 || !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("baseline %+v, patches %v; want storage to grow without a catalogue", b, w.patches)
		}
		w.noCatalogue = false
		w.settle(c)
		if b := w.rap().Status.Baseline; b == nil || b.VCPUs != 2 || b.MemoryGB != 8 {
			t.Errorf("baseline %+v, want the sizes of the catalogue", b)
		}
	})
}

// A round waits for other systems between the decision and the request, and the window may close meanwhile.
func TestNothingIsRequestedAfterTheWindowHasClosed(t *testing.T) {
	start := func(t *testing.T) (*world, *Controller) {
		w := newCloudWorld(t)
		c := w.startAlarm(v1alpha1.MetricCPU)
		w.changeRap(func(rap *v1alpha1.RdsAutopilot) {
			rap.Spec.Flavor.Window = &v1alpha1.Window{Start: "12:00", End: "13:00", TimeZone: "UTC"}
		})
		return w, c
	}
	inBubble(t, "while the intent is stored", func(t *testing.T) {
		w, c := start(t)
		w.onStatus = func() { w.now = w.now.Add(time.Hour) }
		w.mustDecide(c)
		_, events := w.countEvents(string(autopilot.ActionChangeFlavor))
		if len(w.begun)+events+len(w.rap().Status.Changes) > 0 {
			t.Errorf("the cloud has begun %v, %d events, changes %+v", w.begun, events, w.rap().Status.Changes)
		}
	})
	inBubble(t, "while the cloud is read before its request", func(t *testing.T) {
		w, c := start(t)
		began := time.Now()
		w.onChange = func(ctx context.Context, _ v1alpha1.Change) error {
			select {
			case <-time.After(2 * time.Hour):
				return nil
			case <-ctx.Done():
				return fmt.Errorf("%w: %w", autopilot.ErrNotRequested, ctx.Err())
			}
		}
		w.mustDecide(c)
		if took := time.Since(began); len(w.begun) > 0 || took > requestWithin {
			t.Errorf("the cloud has begun %v after %s", w.begun, took)
		}
		if d := w.rap().Status.Decisions; len(d) > 0 && d[0].Reason == autopilot.CloudUnreachable {
			t.Errorf("the cloud answers: %+v", d[0])
		}
	})
}

// The record's test shows the warning about other replicas.
func TestReplicaWithAnAutopilotOfItsOwnIsNotReportedAsSmaller(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		w.inst.Replicas = []autopilot.Replica{{ID: "reader", Name: "reader", VolumeGB: 90}}
		w.owners = map[string]string{"reader": "default/of-the-reader"}
		w.mustDecide(c)
		if n, _ := w.countEvents(string(autopilot.ReasonReplicaSmaller)); n > 0 {
			t.Errorf("%d events", n)
		}
	})
}

// growPostgres lets a volume of PostgreSQL grow, and returns the message of the record.
func growPostgres(t *testing.T, prepare func(*world)) (w *world, message string) {
	t.Helper()
	w = newWorld(t)
	w.now, w.inst.Engine = time.Now(), "PostgreSQL"
	c := w.startAlarm(v1alpha1.MetricStorage)
	w.wal = autopilot.WAL{GB: 41, InactiveSlots: 1}
	prepare(w)
	time.Sleep(time.Until(w.now)) // startAlarm has advanced only the world's clock
	w.run(c)
	w.advance(time.Minute)
	if len(w.patches) != 1 {
		t.Fatalf("patches %v, want one", w.patches)
	}
	records := w.rap().Status.Decisions
	i := slices.IndexFunc(records, func(d v1alpha1.DecisionRecord) bool { return d.Action == string(autopilot.ActionGrowVolume) })
	if i < 0 {
		t.Fatalf("no record of a growth: %+v", records)
	}
	return w, records[i].Message
}

func TestRecordNamesWALOnceAfterAGrowth(t *testing.T) {
	const sentence = "of the 92 GB in use are WAL"
	for name, tc := range map[string]struct {
		prepare  func(*world)
		reads    int
		warnings int
	}{
		"much WAL":       {func(*world) {}, 1, 1},
		"a panic":        {func(w *world) { w.onWAL = func(context.Context) { panic("broken") } }, 1, 0},
		"another engine": {func(w *world) { w.inst.Engine = "MySQL" }, 0, 0},
		"a slow Cloud Eye": {func(w *world) {
			w.onWAL = func(context.Context) {
				time.Sleep(20 * time.Second)
				patches := 0
				w.withLock(func() { patches = len(w.patches) })
				if records := w.rap().Status.Decisions; patches != 1 || len(records) == 0 {
					w.t.Errorf("%d patches and %d records while WAL is read", patches, len(records))
				}
			}
		}, 1, 1},
		"a Cloud Eye that hangs": {func(w *world) {
			w.walErr, w.onWAL = errNoAnswer, func(ctx context.Context) { <-ctx.Done() }
		}, 1, 0},
	} {
		inBubble(t, name, func(t *testing.T) {
			w, message := growPostgres(t, tc.prepare)
			warnings, _ := w.countEvents(string(autopilot.ReasonCauseNotData))
			if len(w.walFrom) != tc.reads || warnings != tc.warnings || strings.Count(message, sentence) != tc.warnings {
				t.Errorf("%d reads, %d warnings, %q; want %d and %d", len(w.walFrom), warnings, message, tc.reads, tc.warnings)
			}
			if tc.reads > 0 && w.walFrom[0] != "rds_cluster_id:in01" {
				t.Errorf("read from %v, want the dimension of the rule", w.walFrom)
			}
		})
	}
}
