// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

func TestPeopleAreWarnedOnceByAllReplicas(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		size := func(gb int) {
			w.changeRds(func(rds *otcv1.Rds) { rds.Spec.VolumeSize = int32(gb) })
			w.inst.VolumeGB = gb
		}
		size(40)
		w.settle(t, w.process())
		w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Storage.MaxGB = 100 })
		warned := func() (reasons []string) {
			for _, e := range w.events {
				if e.Warning && e.Action == eventObserve {
					reasons = append(reasons, e.Reason)
				}
			}
			return reasons
		}
		for _, gb := range []int{50, 60, 70, 80, 90, 100} {
			w.now = w.now.Add(time.Hour)
			size(gb)
			w.settle(t, w.process()) // each time another leader
			w.settle(t, w.process())
		}
		want := []string{"NearCap", "VolumeDoubled", "CapReached"}
		if got := warned(); len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
			t.Errorf("warned of %v, want %v, each once", got, want)
		}
		if len(w.rap().Status.Warned) != 2 || w.rap().Status.Warned[0].Reason != "CapReached" {
			t.Errorf("the status knows of %+v", w.rap().Status.Warned)
		}
	})
}

func TestPeopleAreNotWarnedBeforeTheStatusKnows(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Storage.MaxGB = 100 })
		for step := 1; step < 4; step++ { // killed at the write, before or after it is applied
			w.steps = &steps{killAt: 1, applied: step%2 == 0}
			_, _ = w.look(t.Context(), c)
			told := 0
			for _, e := range w.events {
				if e.Reason == "CapReached" {
					told++
				}
			}
			if told > 0 {
				t.Fatalf("kill %d: told before it was stored", step)
			}
			if step%2 == 0 {
				if len(w.rap().Status.Warned) != 1 {
					t.Fatalf("kill %d: %+v", step, w.rap().Status.Warned)
				}
				return
			}
		}
	})
}
