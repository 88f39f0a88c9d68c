// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The load is read once for a flavor that would change. Without an answer the flavor changes.
func TestLoadIsReadBeforeAFlavorChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		cpu            float64
		waits          float64 // sessions; negative means no answer
		reads, patches int
	}{
		"locks":           {95, 40, 1, 0},
		"no locks":        {95, 0, 1, 1},
		"no answer":       {95, -1, 1, 1},
		"below threshold": {50, 40, 0, 0},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			c := w.process()
			w.settle(t, c)
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Flavor.OnlyIfItHelps = true })
			w.now = w.now.Add(time.Hour)
			w.cpu = tc.cpu
			w.alarm(v1alpha1.MetricCPU, true)
			if tc.waits >= 0 {
				var points, cpu []autopilot.Point
				for age := time.Hour; age > 0; age -= 5 * time.Minute {
					points = append(points, autopilot.Point{Time: w.now.Add(-age), Value: tc.waits})
					cpu = append(cpu, autopilot.Point{Time: w.now.Add(-age), Value: 95})
				}
				w.series = autopilot.Series{"rds_innodb_row_lock_current_waits": points, "rds001_cpu_util": cpu}
			}
			if _, err := w.decide(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if len(w.seriesRead) != tc.reads || len(w.patches) != tc.patches {
				t.Fatalf("%d reads, patches %v; want %d and %d: %+v", len(w.seriesRead), w.patches, tc.reads, tc.patches, w.rap().Status.Decisions)
			}
			if tc.patches == 0 || tc.waits < 0 {
				return
			}
			w.operate()
			w.alarm(v1alpha1.MetricCPU, false)
			w.sweepOnce(t, c)
			w.now = w.now.Add(75 * time.Minute)
			cpu := w.series["rds001_cpu_util"]
			for i := range cpu {
				cpu[i] = autopilot.Point{Time: cpu[i].Time.Add(75 * time.Minute), Value: 48}
			}
			for range 2 { // the second sweep reads nothing
				w.sweepOnce(t, c)
			}
			ch := w.rap().Status.Changes[0]
			if ch.Before == nil || ch.Before.CPUPercent != "95.0" || ch.After == nil || ch.After.CPUPercent != "48.0" || len(w.seriesRead) != 2 {
				t.Errorf("before %+v, after %+v, %d reads", ch.Before, ch.After, len(w.seriesRead))
			}
		})
	}
}
