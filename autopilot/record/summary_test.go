// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

func TestSummarizeNamesTheLastChangeAndDecision(t *testing.T) {
	const volume, flavor = v1alpha1.KindVolume, v1alpha1.KindFlavor
	grown := v1alpha1.Change{Kind: volume, By: v1alpha1.ByAutopilot, From: "40", To: "50", State: v1alpha1.StateCompleted}
	byOthers, lost := grown, grown
	byOthers.By, lost.State = v1alpha1.ByOther, v1alpha1.StateLost
	larger := v1alpha1.Change{
		Kind: flavor, By: v1alpha1.ByAutopilot, From: "rds.mysql.x1.2xlarge.2.ha", To: "rds.mysql.x1.4xlarge.2.ha", State: v1alpha1.StateRequested,
	}
	refused := larger
	refused.State = v1alpha1.StateRefused
	for _, test := range []struct {
		name   string
		status v1alpha1.Status
		want   v1alpha1.Summary
	}{
		{"grown", v1alpha1.Status{Changes: []v1alpha1.Change{grown, byOthers}}, v1alpha1.Summary{LastChange: "40 → 50 GB"}},
		{"lost", v1alpha1.Status{Changes: []v1alpha1.Change{lost}}, v1alpha1.Summary{LastChange: "40 → 50 GB, lost"}},
		{"in progress", v1alpha1.Status{Changes: []v1alpha1.Change{larger, grown}}, v1alpha1.Summary{LastChange: "x1.2xlarge.2.ha → x1.4xlarge.2.ha, in progress"}},
		{"refused", v1alpha1.Status{Changes: []v1alpha1.Change{refused, grown}}, v1alpha1.Summary{LastChange: "40 → 50 GB"}},
		{"decided", v1alpha1.Status{Decisions: []v1alpha1.DecisionRecord{{Reason: "CapReached", Metric: v1alpha1.MetricStorage}, {Reason: "NoData", Metric: v1alpha1.MetricCPU}}},
			v1alpha1.Summary{LastDecision: "CapReached (storage)"}},
		{"without a size", v1alpha1.Status{Instance: &v1alpha1.Instance{}, Used: &v1alpha1.UsedSpace{GB: "41.4"}}, v1alpha1.Summary{}},
		{"measured", v1alpha1.Status{MaxGB: 200, Instance: &v1alpha1.Instance{VolumeGB: 50}, Used: &v1alpha1.UsedSpace{GB: "41.4"}},
			v1alpha1.Summary{Volume: "50 GB", Max: "200 GB", Used: "83 %"}},
	} {
		Summarize(&test.status)
		if got := test.status.Summary; got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestReadyFollowsArmedAndTheLastCheck(t *testing.T) {
	for _, test := range []struct {
		name       string
		armed      bool
		reason     string
		readFailed bool
		want       metav1.ConditionStatus
		wantReason string
	}{
		{"armed", true, autopilot.ArmedReason, false, metav1.ConditionTrue, autopilot.ArmedReason},
		{"armed, and the last read failed", true, autopilot.ArmedReason, true, metav1.ConditionFalse, autopilot.ReadFailed},
		{"not armed", false, autopilot.RuleMissing, false, metav1.ConditionFalse, autopilot.RuleMissing},
		{"not armed, and the last read failed", false, autopilot.CloudUnreachable, true, metav1.ConditionFalse, autopilot.CloudUnreachable},
		{"no instance", false, string(autopilot.ReasonInstanceUnknown), false, metav1.ConditionFalse, string(autopilot.ReasonInstanceUnknown)},
		{"invalid policy", false, string(autopilot.ReasonPolicyInvalid), false, metav1.ConditionFalse, string(autopilot.ReasonPolicyInvalid)},
		{"off", false, string(autopilot.ReasonNotEnabled), false, metav1.ConditionTrue, string(autopilot.ReasonNotEnabled)},
	} {
		var s v1alpha1.Status
		SetCondition(&s, v1alpha1.ConditionArmed, test.armed, test.reason, "why", 3, cases.Noon())
		SetReady(&s, test.readFailed, 4, cases.Noon().Add(time.Minute))
		got := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
		if got == nil || got.Status != test.want || got.Reason != test.wantReason || got.ObservedGeneration != 4 || got.Message == "" {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
	var s v1alpha1.Status
	if SetReady(&s, false, 1, cases.Noon()); len(s.Conditions) > 0 {
		t.Errorf("without the condition Armed: %+v", s.Conditions)
	}
}
