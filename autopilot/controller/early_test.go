// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The sweep reads the last six hours only of a volume that fills fast, and grows it unless something was freed.
func TestSweepGrowsAVolumeBeforeItsAlarm(t *testing.T) {
	for name, tc := range map[string]struct {
		perHour, freed float64
		noAnswer       bool
		reads, patches int
	}{
		"slow":                {perHour: 2},
		"fast":                {perHour: 20, reads: 1, patches: 1},
		"fast after clean-up": {perHour: 20, freed: 10, reads: 1},
		"no answer":           {perHour: 20, noAnswer: true, reads: 1},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			c := w.process()
			w.settle(t, c)
			w.usedGB, w.filling = 86, autopilot.Filling{Known: true, Middle: tc.perHour, Fast: tc.perHour}
			if !tc.noAnswer {
				var used []autopilot.Point
				for age := 6 * time.Hour; age >= 0; age -= 5 * time.Minute {
					used = append(used, autopilot.Point{Time: w.now.Add(-age), Value: 86 - tc.freed})
				}
				used[10].Value = 86
				w.series = autopilot.Series{"rds048_disk_used_size": used}
			}
			w.sweepOnce(t, c)
			if len(w.patches) != tc.patches || len(w.seriesRead) != tc.reads {
				t.Errorf("%d patches, %d reads; want %d and %d", len(w.patches), len(w.seriesRead), tc.patches, tc.reads)
			}
			if tc.patches == 0 {
				return
			}
			if record := w.rap().Status.Decisions[0]; record.Metric != v1alpha1.MetricStorage || record.To != "120" {
				t.Errorf("record %+v", record)
			}
			w.operate()
			w.sweepOnce(t, c)
			w.sweepOnce(t, c)
			if !slices.Equal(w.patches, []string{"120"}) {
				t.Errorf("patches %v: the same measurement caused a second step", w.patches)
			}
		})
	}
}
