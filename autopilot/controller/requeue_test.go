// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

// A guard that time alone ends is not polled: the round says when to come back, and then it acts.
func TestTheLoopComesBackWhenAGuardEnds(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		w.cpu = 99
		w.alarm(v1alpha1.MetricCPU, true)
		for range 20 { // until it has been ACTIVE for 15 minutes
			w.settle(t, c)
			if len(w.patches) > 0 {
				break
			}
		}
		w.operate()
		w.inst.VCPUs, w.inst.MemoryGB = 4, 16
		w.settle(t, c)
		if len(w.patches) != 1 {
			t.Fatalf("patches %v, want one", w.patches)
		}
		again, err := w.look(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		end := w.rap().Status.Changes[0].CompletionTime.Add(time.Hour)
		if d := w.rap().Status.Decisions[0]; d.Reason != "Cooldown" || again != end.Sub(w.now) {
			t.Fatalf("%s: back in %s, want at the end of the cooldown in %s", d.Reason, again, end.Sub(w.now))
		}
		w.now = w.now.Add(again)
		if _, err := w.look(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if len(w.patches) != 2 {
			t.Errorf("patches %v: it came back and did not act: %+v", w.patches, w.rap().Status.Decisions[0])
		}
	})
}
