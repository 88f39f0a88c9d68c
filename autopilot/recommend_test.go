// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Recommend says exactly what Auto would do: whatever the case, an alarm gets the same answer apart from its reason, and
// nothing is intended. Where storage goes first in Auto, a flavor gets the answer of after that, for in Recommend the
// volume never grows.
func TestRecommendSaysWhatAutoWouldDo(t *testing.T) {
	rows := sentences()
	rapid.Check(t, func(t *rapid.T) {
		c := quiet()
		var names []string
		for range rapid.IntRange(0, 3).Draw(t, "alterations") {
			row := rapid.SampledFrom(rows).Draw(t, "row")
			if row.alter != nil && c.Instance != nil {
				row.alter(&c)
			}
			names = append(names, string(row.reason))
		}
		c.Alarms = rapid.SampledFrom([][]Alarm{
			{storageAt(rapid.Float64Range(60, 100).Draw(t, "GB"))},
			{usageAt(v1alpha1.MetricCPU, rapid.Float64Range(80, 100).Draw(t, "CPU"))},
			{usageAt(v1alpha1.MetricCPU, 95), usageAt(v1alpha1.MetricMemory, 97)}, nil,
		}).Draw(t, "alarms")
		if c.Mode != v1alpha1.ModeOff {
			c.Mode = v1alpha1.ModeAuto
		}
		for _, i := range c.Status.Intents() {
			i.Refusal = nil // the API server's word about a patch: Recommend makes none
		}
		auto := Decide(c)
		bound := c
		bound.Mode = NarrowerMode(c.Mode, v1alpha1.ModeRecommend)
		dry := Decide(bound)
		if dry.Intent != nil {
			t.Fatalf("%v: Recommend intends %+v", names, dry.Intent)
		}
		if i := auto.Intent; i != nil && i.Kind == v1alpha1.KindVolume && len(auto.Decisions) > 1 {
			return // a wish whose window is open came beside the storage alarm
		}
		if len(dry.Decisions) != len(auto.Decisions) || dry.RequeueAfter != auto.RequeueAfter {
			t.Fatalf("%v: %d answers, again in %s; Auto %d, %s", names, len(dry.Decisions), dry.RequeueAfter, len(auto.Decisions), auto.RequeueAfter)
		}
		for i, d := range dry.Decisions {
			if was := auto.Decisions[i]; was.Acts() {
				if d.Reason != ReasonRecommend || !strings.HasSuffix(d.Message, " (recommended only)") {
					t.Fatalf("%v: %+v", names, d)
				}
				d.Reason, d.Message = was.Reason, strings.TrimSuffix(d.Message, " (recommended only)")
			}
			if diff := cmp.Diff(auto.Decisions[i], d); diff != "" {
				t.Fatalf("%v: Recommend differs from Auto:\n%s", names, diff)
			}
		}
		if diff := cmp.Diff(auto.Deferred, dry.Deferred); diff != "" && auto.Intent == nil {
			t.Fatalf("%v: the wish differs:\n%s", names, diff)
		}
	})
}

func TestRecommendNamesTheFlavorThatAutoChangesAfterTheVolume(t *testing.T) {
	c := quiet().with(storageAt(93), usageAt(v1alpha1.MetricCPU, 95))
	auto := Decide(c)
	if d := auto.Decisions[1]; d.Reason != ReasonChangePending || d.Message != "Storage grows first, then the flavor changes. Next check in 30 seconds" {
		t.Errorf("in Auto: %+v", d)
	}
	c.Mode = v1alpha1.ModeRecommend
	dry := Decide(c)
	c.Mode, c.Alarms = v1alpha1.ModeAuto, c.Alarms[1:]
	if then := Decide(c); dry.Decisions[0].To != auto.Decisions[0].To || dry.Decisions[1].To != then.Decisions[0].To || dry.Decisions[1].Reason != ReasonRecommend {
		t.Errorf("recommended %+v, Auto does %+v and then %+v", dry.Decisions, auto.Decisions[0], then.Decisions)
	}
}

func TestNarrowerModeReturnsTheStricterMode(t *testing.T) {
	for _, policy := range []v1alpha1.Mode{v1alpha1.ModeAuto, v1alpha1.ModeRecommend, v1alpha1.ModeOff} {
		for flag, want := range map[v1alpha1.Mode]v1alpha1.Mode{v1alpha1.ModeAuto: policy, v1alpha1.ModeOff: v1alpha1.ModeOff} {
			if got := NarrowerMode(policy, flag); got != want {
				t.Errorf("policy %s, --mode %s: %s, want %s", policy, flag, got, want)
			}
		}
	}
	if got := NarrowerMode(v1alpha1.ModeAuto, v1alpha1.ModeRecommend); got != v1alpha1.ModeRecommend {
		t.Errorf("--mode Recommend leaves Auto at %s", got)
	}
	if got := NarrowerMode(v1alpha1.ModeOff, v1alpha1.ModeRecommend); got != v1alpha1.ModeOff {
		t.Errorf("--mode Recommend widens Off to %s", got)
	}
}
