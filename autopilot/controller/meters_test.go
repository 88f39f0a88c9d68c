// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/test/level"
)

// gauges returns the gauges of a process by name and label values.
func gauges(t *testing.T, c *Controller) map[string]float64 {
	t.Helper()
	families, err := c.options.Reg.(*prometheus.Registry).Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			found[name] = m.GetGauge().GetValue()
		}
	}
	return found
}

func TestAQueueThatDoesNotMoveIsShown(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w, c := full(t)
		if got := gauges(t, c)["rds_autopilot_sweep_interval_seconds"]; got != c.options.Sweep.Seconds() {
			t.Errorf("sweep interval %g", got)
		}
		hang := make(chan struct{})
		w.duringCloud = func() { <-hang }
		stop := w.lead(c)
		synctest.Wait()
		w.mu.Lock()
		w.now = w.now.Add(20 * time.Minute)
		w.mu.Unlock()
		if got := gauges(t, c)["rds_autopilot_queue_idle_seconds decide"]; got != 1200 {
			t.Errorf("idle for %g s while a check hangs, want 1200", got)
		}
		w.duringCloud = nil
		close(hang)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := gauges(t, c)["rds_autopilot_queue_idle_seconds decide"]; got != 0 {
			t.Errorf("idle for %g s without a waiting database", got)
		}
		stop()
	})
}
