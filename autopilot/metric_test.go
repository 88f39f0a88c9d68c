// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestMetricTableIsComplete(t *testing.T) {
	cloudEye := map[string]bool{}
	for _, row := range MetricTable() {
		if row.Label == "" || row.CloudEye == "" || cloudEye[row.CloudEye] || row.Unit == "" || row.trigger == nil || row.alarm == nil || row.Action() == ActionNone {
			t.Errorf("%s: %+v", row.Metric, row)
		}
		if (row.require != nil) != (row.HelpedBy == v1alpha1.KindFlavor) || row.InGB() != (row.TotalGB != "") {
			t.Errorf("%s: helped by %s, used space %q of %q", row.Metric, row.HelpedBy, row.UsedGB, row.TotalGB)
		}
		cloudEye[row.CloudEye] = true
		if known, err := LookupMetric(row.Metric); err != nil || known.CloudEye != row.CloudEye {
			t.Errorf("%s: %v, %v", row.Metric, known.CloudEye, err)
		}
	}
	if row, err := LookupMetric("iops"); err == nil {
		t.Errorf("an unknown metric has the row %+v", row)
	}
	if err := Validate(DefaultSpec(), "Throughput"); err == nil {
		t.Error("an unknown kind of change has a valid policy")
	}
	var required flavors.Requirements
	for _, m := range Metrics() {
		if mark := Row(m).require; mark != nil {
			mark(&required)
		}
	}
	if !required.CPU || !required.Memory {
		t.Errorf("required %+v", required)
	}
}

func TestReasonTableIsComplete(t *testing.T) {
	seen := map[Reason]bool{}
	for _, row := range ReasonTable() {
		if row.Meaning == "" || seen[row.Reason] || row.Source == "" {
			t.Errorf("%+v", row)
		}
		if row.Source == SourceCondition && row.IsWarning {
			t.Errorf("%+v", row)
		}
		seen[row.Reason] = true
	}
	if unknown := Reason("Newer"); unknown.IsWarning() || unknown.LacksEvidence() {
		t.Errorf("%+v", unknown.Row())
	}
}
