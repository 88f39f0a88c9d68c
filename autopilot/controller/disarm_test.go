// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// noAutopilots is a cache that does not have the RdsAutopilots yet.
type noAutopilots struct{ Kubernetes }

func (noAutopilots) Autopilot(string, string) (*v1alpha1.RdsAutopilot, bool) { return nil, false }

// unreadable is a cache without RdsAutopilots, and an API server that does not let them be read.
type unreadable struct{ noAutopilots }

func (unreadable) LiveAutopilot(context.Context, string, string) (*v1alpha1.RdsAutopilot, error) {
	return nil, &autopilot.RefusedError{Message: "forbidden"}
}

// A right that is missing is no proof that an object is gone. The next sweep tries again, and no retry before.
func TestRulesOfAnObjectThatMayNotBeReadStay(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		readable := c.options.Kube
		w.remove(w.raps())
		c.options.Kube = unreadable{noAutopilots{readable}}
		if err := w.arm(c); err != nil || len(w.states) == 0 {
			t.Errorf("%v, rules %v", err, w.states)
		}
		c.options.Kube = readable
		if err := w.arm(c); err != nil || len(w.states) > 0 {
			t.Errorf("readable again: %v, rules %v", err, w.states)
		}
	})
}

// A namespace that may not be listed any more has no events, so the cache keeps an object that was deleted.
func TestRulesOfAnObjectThatIsGoneAreRemovedAlthoughTheCacheHasIt(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		w.stopWatches()
		w.remove(w.raps())
		if err := w.arm(c); !errors.Is(err, autopilot.ErrGone) {
			t.Error(err)
		}
		if err := w.arm(c); err != nil || len(w.states) > 0 {
			t.Errorf("%v, rules %v", err, w.states)
		}
	})
}

// The cache may be old, so only the API server proves that autopilot is off.
func TestRulesOfADatabaseThatIsOnAreNotRemovedByAnOldCache(t *testing.T) {
	for name, cache := range map[string]func(*world, *Controller){
		"the RdsAutopilot is missing": func(_ *world, c *Controller) { c.options.Kube = noAutopilots{c.options.Kube} },
		"the mode is Off": func(w *world, c *Controller) {
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Mode = v1alpha1.ModeOff })
			w.freezeAutopilots(c)
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Mode = v1alpha1.ModeAuto })
		},
		"spec.autopilot was false": func(w *world, c *Controller) {
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Status.Switch.Value = v1alpha1.SwitchOff })
			w.freezeAutopilots(c)
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Status.Switch.Value = v1alpha1.SwitchOn })
			w.setSwitch(nil)
			c.switches.last = map[Key]v1alpha1.Switch{}
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			c := w.process()
			w.settle(c)
			cache(w, c)
			if err := w.arm(c); !errors.Is(err, autopilot.ErrConflict) || len(w.states) == 0 || w.topic.URN == "" {
				t.Errorf("%v, rules %v, topic %+v; want a conflict", err, w.states, w.topic)
			}
		})
	}
}

// The removal waits for the cloud, and its write must not overwrite what was decided meanwhile.
func TestSwitchThatIsTurnedOnDuringTheRemovalStaysOn(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		w.setSwitch(new(false))
		w.mustDecide(c)
		w.onRemove = func() { w.onRemove = nil; w.setSwitch(new(true)); w.mustDecide(c) }
		if err := w.arm(c); !errors.Is(err, autopilot.ErrConflict) || w.rap().Status.Switch.Value != v1alpha1.SwitchOn {
			t.Errorf("%v, the switch is %+v", err, w.rap().Status.Switch)
		}
		if must := w.arm(c); must != nil || !w.armed() {
			t.Errorf("%v, armed %t at once", must, w.armed())
		}
	})
}

// A list of before the removal would show the rules again, and events need no list. It is reported once, although the
// status is refused at first.
func TestRulesAreRemovedOnceAndASweepUsesANewerList(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		begun, already := w.now, len(w.removes)
		w.setSwitch(new(false))
		w.statusRefusal, w.now = "denied by policy", w.now.Add(time.Minute)
		for range 3 {
			if err := w.arm(c); err == nil {
				t.Error("the refusal is not returned")
			}
		}
		w.statusRefusal = ""
		w.settle(c)
		c.armMarks.setSweep(database, begun)
		w.must(w.arm(c))
		if at := w.removes[already:]; len(at) != 2 || !at[1].After(begun) {
			t.Errorf("removals by lists of %v, want one, and that of the sweep by a newer list than %s", at, begun)
		}
		if _, n := w.countEvents(eventDisarmed); n != 1 {
			t.Errorf("%d events", n)
		}
	})
}
