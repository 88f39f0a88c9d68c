package controller

import (
	"testing"
	"time"
)

func TestPeopleAreWarnedOnceByAllReplicas(t *testing.T) {
	w := newWorld()
	w.rds.Spec.VolumeSize, w.inst.VolumeGB = 40, 40
	w.settle(t, w.process())
	w.rap.Spec.Storage.MaxGB = 100
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
		w.rds.Spec.VolumeSize, w.inst.VolumeGB = int32(gb), gb
		w.settle(t, w.process()) // each time another leader
		w.settle(t, w.process())
	}
	want := []string{"NearCap", "VolumeDoubled", "CapReached"}
	if got := warned(); len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("warned of %v, want %v, each once", got, want)
	}
	if len(w.rap.Status.Warned) != 2 || w.rap.Status.Warned[0].Reason != "CapReached" {
		t.Errorf("the status knows of %+v", w.rap.Status.Warned)
	}
}

func TestPeopleAreNotWarnedBeforeTheStatusKnows(t *testing.T) {
	w := newWorld()
	c := w.process()
	w.settle(t, c)
	w.rap.Spec.Storage.MaxGB = 100
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
			if len(w.rap.Status.Warned) != 1 {
				t.Fatalf("kill %d: %+v", step, w.rap.Status.Warned)
			}
			return
		}
	}
}
