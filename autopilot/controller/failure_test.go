// SPDX-License-Identifier: Apache-2.0

package controller

import (
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

// full is an armed database whose volume is in alarm.
func full(t *testing.T) (*world, *Controller) {
	t.Helper()
	w := newWorld(t)
	c := w.process()
	w.settle(t, c)
	w.usedGB = 92
	w.alarm(v1alpha1.MetricStorage, true)
	w.events = nil
	return w, c
}

func (w *world) countEvents(reason string) (warnings, normal int) {
	for _, e := range w.events {
		switch {
		case e.Reason == reason && e.Warning:
			warnings++
		case e.Reason == reason:
			normal++
		}
	}
	return warnings, normal
}

func TestWhatTheAPIServerRefusesIsNotReportedAsDone(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w, c := full(t)
		w.refusal = "denied by policy: not on Fridays"
		w.settle(t, c)
		if warnings, _ := w.countEvents("Refused"); warnings != 1 {
			t.Errorf("%d warnings of the refusal", warnings)
		}
		if _, normal := w.countEvents("GrowVolume"); normal > 0 || meta.IsStatusConditionTrue(w.rap().Status.Conditions, v1alpha1.ConditionProgressing) {
			t.Errorf("told as done: %+v, %+v", w.events, w.rap().Status.Conditions)
		}
		if d := w.rap().Status.Decisions[0]; d.Reason != "Refused" || !strings.Contains(d.Message, w.refusal) {
			t.Errorf("%+v", d)
		}
		if p := w.rap().Status.Pending; p == nil || p.Refusal == nil || p.Refusal.Count < 2 {
			t.Errorf("pending %+v, want it tried again", p)
		}
		w.refusal = ""
		w.now = w.now.Add(15 * time.Minute)
		w.settle(t, c)
		if _, normal := w.countEvents("GrowVolume"); normal != 1 || !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("patches %v, events %+v", w.patches, w.events)
		}
	})
}

func TestWhatTheAPIServerPutsBackIsNotReportedAsDone(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w, c := full(t)
		w.putsBack = true
		if _, err := w.look(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if _, normal := w.countEvents("GrowVolume"); normal > 0 {
			t.Errorf("told as done: %+v", w.events)
		}
		if !meta.IsStatusConditionTrue(w.rap().Status.Conditions, v1alpha1.ConditionContested) || w.rap().Status.Pending != nil {
			t.Errorf("%+v", w.rap().Status)
		}
		for range 30 {
			w.now = w.now.Add(time.Second)
			if _, err := w.look(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.patches) != 1 {
			t.Errorf("%d patches in half a minute", len(w.patches))
		}
	})
}

// What a user says while a round waits for the cloud comes first.
func TestNothingIsPatchedOnceTheUserSaidNo(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		for name, change := range map[string]func(*world){
			"autopilot false": func(w *world) { w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = new(false) }) },
			"autopilot false, dropped at once by the operator": func(w *world) {
				w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = new(false) })
				w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = nil })
			},
			"another instance": func(w *world) { w.changeRds(func(rds *otcv1.Rds) { rds.Status.ID = "in02" }) },
			"deleted": func(w *world) {
				w.changeRds(func(rds *otcv1.Rds) { rds.Finalizers = []string{"example.com/operator"} })
				w.remove(w.rdss())
			},
		} {
			w, c := full(t)
			w.duringCloud = func() { change(w) }
			_, err := w.decide(t.Context(), c)
			if len(w.patches) > 0 || !errors.Is(err, autopilot.ErrConflict) {
				t.Errorf("%s: patched %v, error %v", name, w.patches, err)
			}
			if _, normal := w.countEvents("GrowVolume"); normal > 0 {
				t.Errorf("%s: told as done", name)
			}
		}
	})
}

// The rules and signals of a former instance say nothing about the one that has its name now.
func TestAnotherInstanceIsNotGrownByTheOldOnesAlarm(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w, c := full(t)
		w.cpu = 5
		w.alarm(v1alpha1.MetricCPU, true)
		at := metav1.NewMicroTime(w.now)
		w.changeRap(func(rap *v1alpha1.RdsAutopilot) {
			rap.Status.Intake.Signals = []v1alpha1.Signal{{Metric: v1alpha1.MetricStorage, AlarmID: "al-storage", State: v1alpha1.StateAlarm, AlarmTime: at, ReceivedTime: at}}
		})
		w.changeRds(func(rds *otcv1.Rds) { rds.Status.ID = "in02" })
		w.inst.ID = "in02"
		for range 5 { // arming fails all the while
			w.now = w.now.Add(time.Minute)
			if _, err := w.decide(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.patches) > 0 || len(w.rap().Status.Decisions) > 0 {
			t.Errorf("patches %v, decisions %+v", w.patches, w.rap().Status.Decisions)
		}
	})
}

func TestTheLastWordOfTheSwitchWins(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		for _, last := range []bool{true, false} {
			w := newWorld(t)
			c := w.process()
			w.settle(t, c)
			say := func(word *bool) { w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = word }) }
			if !last { // begin from the other side
				say(new(false))
				w.settle(t, c)
				say(nil)
			}
			for _, word := range []*bool{new(!last), new(last), nil} { // before anybody looks
				say(word)
			}
			w.settle(t, c)
			if w.armed() != last {
				t.Errorf("armed %t after %t as the last word", w.armed(), last)
			}
		}
	})
}

func TestTheResizeListIsReadLast(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		w.cpu = 99
		w.offered = []string{"rds.mysql.n1.2xlarge.4"} // not the next one
		w.alarm(v1alpha1.MetricCPU, true)
		if _, err := w.look(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if w.resizeLists != 0 || w.rap().Status.Decisions[0].Reason != "InstanceBusy" {
			t.Fatalf("read %d times while %s", w.resizeLists, w.rap().Status.Decisions[0].Message)
		}
		w.settle(t, c)
		w.settle(t, c)
		if w.resizeLists != 1 || !slices.Equal(w.patches, []string{"rds.mysql.n1.2xlarge.4"}) {
			t.Errorf("read %d times, patched %v; want what this instance is offered", w.resizeLists, w.patches)
		}
	})
}

func TestAFullInstanceIsArmed(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.inst.Status, w.usedGB = autopilot.StatusStorageFull, 99
		c := w.process()
		w.settle(t, c)
		if !w.armed() || w.rap().Status.Baseline == nil {
			t.Fatalf("not armed: %+v", w.rap().Status)
		}
		w.alarm(v1alpha1.MetricStorage, true)
		w.settle(t, c)
		if !slices.Equal(w.patches, []string{"120"}) {
			t.Errorf("patches %v", w.patches)
		}
		if warnings, _ := w.countEvents("StorageFull"); warnings != 1 {
			t.Errorf("%d warnings", warnings)
		}
	})
}

func TestTheSizesOfAFlavorComeFromTheCatalogue(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.inst.VCPUs, w.inst.MemoryGB = 0, 0
		c := w.process()
		w.noFlavors = true
		w.settle(t, c)
		w.usedGB = 92
		w.alarm(v1alpha1.MetricStorage, true)
		w.settle(t, c)
		if b := w.rap().Status.Baseline; b == nil || b.VolumeGB != 100 || b.VCPUs != 0 || !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("baseline %+v, patches %v; want storage to grow without a catalogue", b, w.patches)
		}
		w.noFlavors = false
		w.settle(t, c)
		if b := w.rap().Status.Baseline; b == nil || b.VCPUs != 2 || b.MemoryGB != 8 {
			t.Errorf("baseline %+v, want the catalogue's", b)
		}
	})
}

func TestACompletionIsNotDatedToBeforeTheListingThatProvesIt(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w, c := full(t)
		w.settle(t, c)
		begin := w.now
		w.duringCloud = func() { w.now = begin.Add(40 * time.Second); w.operate() }
		if _, err := w.decide(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if ch := w.rap().Status.Changes; len(ch) != 1 || !ch[0].CompletionTime.Time.Equal(begin.Add(40*time.Second)) {
			t.Errorf("%+v, want it completed at %s", ch, begin.Add(40*time.Second))
		}
	})
}

func TestDecisionsWithNewsGoFirst(t *testing.T) {
	key := func(name string) Key { return Key{"ns", name} }
	m := newMarks()
	q := newQueues(m)
	defer q.shutDown()
	for _, name := range []string{"a", "b", "c"} {
		m.setSweep(key(name), time.Now())
		q.decide.Add(key(name))
	}
	q.decide.Add(key("recheck"))
	m.setNews(key("news"))
	q.decide.Add(key("news"))
	m.setNews(key("c")) // of one that the sweep asked for
	q.decide.Add(key("c"))
	m.setSweep(key("c"), time.Now()) // another sweep does not put it back
	q.decide.Add(key("c"))
	var order []string
	for q.decide.Len() > 0 {
		k, _ := q.decide.Get()
		order = append(order, k.Name)
		q.decide.Done(k)
	}
	if got := strings.Join(order, " "); got != "news c a b recheck" {
		t.Errorf("taken in the order %s", got)
	}
}

// A failed round keeps its reason for the retry: a sweep still reads the used space. Only a conflict keeps news in front.
func TestRetryKeepsTheMarkOfItsRound(t *testing.T) {
	begun, notBefore := time.Unix(100, 0), time.Unix(200, 0)
	failed := errors.New("no answer")
	for name, tc := range map[string]struct {
		taken mark
		err   error
		want  mark
	}{
		"sweep, no answer":          {mark{isSweep: true, begun: begun}, failed, mark{isSweep: true, begun: notBefore}},
		"news, no answer":           {mark{isNews: true}, failed, mark{}},
		"news, conflict":            {mark{isNews: true}, autopilot.ErrConflict, mark{isNews: true, begun: notBefore}},
		"sweep and news, no answer": {mark{isSweep: true, begun: begun, isNews: true}, failed, mark{isSweep: true, begun: notBefore}},
		"recheck, no answer":        {mark{}, failed, mark{}},
	} {
		m := newMarks()
		m.restore(database, tc.taken, notBefore, tc.err)
		if got := m.take(database); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// An event must not take the sweep's check of the used space and of the alarms away: a busy Rds has events all the time.
func TestAnEventLeavesTheSweepAlone(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		c.queues = newQueues(c.decideMarks)
		defer c.queues.shutDown()
		begin := w.now
		c.enqueueForSweep(database, begin)
		c.enqueue(database)
		if got := c.decideMarks.take(database); !got.isNews || !got.isSweep {
			t.Errorf("%+v, want news, because the lists of the sweep are too old, and a sweep", got)
		}
		if got := c.armMarks.take(database); !got.isSweep || !got.begun.Equal(begin) {
			t.Error("the drift of its alarms is not repaired")
		}
	})
}

// A conflict with our own arming is no news of the cloud: the next try must not list all rules once more.
func TestAConflictInASweepCostsNoListing(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.listedFor = time.Millisecond // whatever is not of the sweep is too old
		c := w.process()
		w.settle(t, c)
		w.alarm(v1alpha1.MetricStorage, true)
		w.usedGB = 93
		w.now = w.now.Add(time.Second)
		begin := w.now
		if _, err := (cloud{w}).AlarmStates(t.Context(), begin); err != nil {
			t.Fatal(err)
		}
		listings := w.listings
		c.decideMarks.setSweep(database, begin)
		w.now = w.now.Add(10 * time.Second)
		w.duringCloud = func() { // somebody writes, once
			w.duringCloud = nil
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Labels = map[string]string{"by": "somebody"} })
		}
		if _, err := w.decide(t.Context(), c); !errors.Is(err, autopilot.ErrConflict) {
			t.Fatalf("no conflict: %v", err)
		}
		if _, err := w.decide(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if w.listings != listings {
			t.Errorf("%d listings for the second try", w.listings-listings)
		}
	})
}
