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
				var points []autopilot.Point
				for age := time.Hour; age > 0; age -= 5 * time.Minute {
					points = append(points, autopilot.Point{Time: w.now.Add(-age), Value: tc.waits})
				}
				w.series = autopilot.Series{"rds_innodb_row_lock_current_waits": points}
			}
			if _, err := w.decide(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if len(w.seriesRead) != tc.reads || len(w.patches) != tc.patches {
				t.Errorf("%d reads, patches %v; want %d and %d: %+v", len(w.seriesRead), w.patches, tc.reads, tc.patches, w.rap().Status.Decisions)
			}
		})
	}
}
