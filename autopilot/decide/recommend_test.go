// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// In every case, Recommend decides as Auto does, with the reason Recommend in place of AlarmInForce, and intends nothing.
// The guards after the mode allow the change in these cases.
func TestRecommendDecidesAsAutoAndIntendsNothing(t *testing.T) {
	rows := slices.Concat(rows(), rowsOfOneApply())
	rapid.Check(t, func(t *rapid.T) {
		c := cases.Quiet()
		var names []string
		for range rapid.IntRange(0, 3).Draw(t, "alterations") {
			row := rapid.SampledFrom(rows).Draw(t, "row")
			if row.alter != nil && c.Instance != nil {
				row.alter(&c)
			}
			names = append(names, row.name)
		}
		c.Alarms = rapid.SampledFrom([][]autopilot.Alarm{
			{cases.StorageAt(rapid.Float64Range(60, 100).Draw(t, "GB"))},
			{cases.UsageAt(v1alpha1.MetricCPU, rapid.Float64Range(80, 100).Draw(t, "CPU"))},
			{cases.UsageAt(v1alpha1.MetricCPU, 95), cases.UsageAt(v1alpha1.MetricMemory, 97)}, nil,
		}).Draw(t, "alarms")
		if c.Mode != v1alpha1.ModeOff {
			c.Mode = v1alpha1.ModeAuto
		}
		for i := range c.Status.Changes {
			c.Status.Changes[i].Refusal = nil // Recommend requests nothing that could be refused
		}
		c.Claim.Holds = c.Claim.By == "" // Recommend decides without a claim
		c.HasPlace, c.Offered, c.IsOffered, c.NotOffered = true, nil, false, ""
		delete(c.Facts, place) // Recommend asks neither for a place nor for the resize list
		delete(c.Facts, resizeList)
		auto := verdictOf(c)
		bound := c
		bound.Mode = autopilot.NarrowerMode(c.Mode, v1alpha1.ModeRecommend)
		dry := verdictOf(bound)
		if dry.Change != nil {
			t.Fatalf("%v: Recommend intends %+v", names, dry.Change)
		}
		if i := auto.Change; i != nil && i.Kind == v1alpha1.KindVolume && len(c.DueDeferred(nil)) > 0 {
			return // Auto grows the volume before it makes the deferred change; Recommend decides on both
		}
		if len(dry.Decisions) != len(auto.Decisions) || dry.RequeueAfter != auto.RequeueAfter {
			t.Fatalf("%v: %d decisions, next check in %s; Auto %d, %s", names, len(dry.Decisions), dry.RequeueAfter, len(auto.Decisions), auto.RequeueAfter)
		}
		for i, d := range dry.Decisions {
			if was := auto.Decisions[i]; was.Acts() {
				if d.Reason != autopilot.ReasonRecommend || !strings.HasSuffix(d.Message, " (recommended only)") {
					t.Fatalf("%v: %+v", names, d)
				}
				d.Guard, d.Reason, d.Message = was.Guard, was.Reason, strings.TrimSuffix(d.Message, " (recommended only)")
			}
			if diff := cmp.Diff(auto.Decisions[i], d); diff != "" {
				t.Fatalf("%v: Recommend differs from Auto:\n%s", names, diff)
			}
		}
		if diff := cmp.Diff(auto.Deferred, dry.Deferred); diff != "" && auto.Change == nil {
			t.Fatalf("%v: the deferred change differs:\n%s", names, diff)
		}
	})
}
