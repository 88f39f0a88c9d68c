// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

// noAutopilots is a cache that does not have the RdsAutopilots yet.
type noAutopilots struct{ Kubernetes }

func (noAutopilots) Autopilot(string, string) (*v1alpha1.RdsAutopilot, bool) { return nil, false }

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

func TestDisarmedIsReportedOnceAlthoughTheStatusIsRefused(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(c)
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
		if _, n := w.countEvents(eventDisarmed); n != 1 {
			t.Errorf("%d events", n)
		}
		// A list of before the removal would show the rules again, and events need no list.
		if at := w.removes[already:]; len(at) != 2 || !at[1].After(begun) {
			t.Errorf("removals by lists of %v, want one, and that of the sweep by a newer list than %s", at, begun)
		}
	})
}

func TestObjectWithoutARuleOfItsOwnRequestsNoChange(t *testing.T) {
	for name, tc := range map[string]struct {
		alter  func(*world)
		free   func(*world)
		reason string // of Armed, before free
	}{
		"another object manages the instance": {func(w *world) { w.owners = map[string]string{"in01": "elsewhere/db"} },
			func(w *world) { w.owners = nil }, string(autopilot.ReasonInstanceClaimed)},
		"Cloud Eye does not answer": {func(w *world) { w.ensureErr = errNoAnswer },
			func(w *world) { w.ensureErr = nil }, autopilot.CloudUnreachable},
		"Cloud Eye refuses the rule after a while": {func(w *world) { w.ensureErr = errNoAnswer },
			func(w *world) { w.ensureErr = v1alpha1.ErrQuota }, autopilot.CloudUnreachable},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newCloudWorld(t, true)
			w.inst.Status, w.usedGB = autopilot.StatusStorageFull, 98 // grows without an alarm
			tc.alter(w)
			w.run(w.process())
			w.advance(20 * time.Minute)
			w.checkCondition(name, v1alpha1.ConditionArmed, metav1.ConditionFalse, tc.reason)
			if len(w.patches)+len(w.begun)+len(w.states) > 0 {
				t.Errorf("patched %v, the cloud has begun %v, rules %v", w.patches, w.begun, w.states)
			}
			w.withLock(func() { tc.free(w) })
			if w.advance(6 * time.Minute); len(w.patches) != 1 {
				t.Errorf("patches %v within a sweep, want one", w.patches)
			}
		})
	}
}
