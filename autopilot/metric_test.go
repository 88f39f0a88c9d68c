// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"
	"time"

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
	var required flavors.Requirements
	for _, m := range Metrics() {
		if mark := metricRow(m).require; mark != nil {
			mark(&required)
		}
	}
	if !required.CPU || !required.Memory {
		t.Errorf("required %+v", required)
	}
}

// A newer version may have stored a metric that this one does not know. It is never taken for storage.
func TestUnknownMetric(t *testing.T) {
	if row, err := LookupMetric("iops"); err == nil {
		t.Errorf("found %+v", row)
	}
	if err := Validate(policy(), "Throughput"); err == nil {
		t.Error("an unknown kind of change has a valid policy")
	}
	unknown := storageAt(99)
	unknown.Metric = "iops"
	if v := Decide(quiet().with(unknown)); v.Intent != nil || len(v.Decisions) != 1 || v.Decisions[0].Reason != ReasonPolicyInvalid {
		t.Errorf("in force: %+v", v)
	}
	c := quiet().with(unknown)
	if c.MayChangeFlavor() {
		t.Error("an unknown metric asks for another flavor")
	}
	unknown.GrowthTime = noon().Add(-10 * time.Minute)
	unknown.State = v1alpha1.StateOK
	if v := Decide(quiet().with(unknown)); v.Intent != nil || len(v.Decisions) != 0 {
		t.Errorf("not in force: %+v", v)
	}
	c = quiet()
	wished("iops")(&c)
	if v := Decide(c); v.Intent != nil || len(v.Decisions) != 0 {
		t.Errorf("a wish: %+v", v)
	}
}

func TestReasonTableIsComplete(t *testing.T) {
	seen := map[Reason]bool{}
	guard := 0
	for _, row := range ReasonTable() {
		if row.Meaning == "" || seen[row.Reason] || row.Source == "" || row.Guard != 0 && row.Guard < guard {
			t.Errorf("%+v", row)
		}
		if row.Source == SourceCondition && row.IsWarning || row.Guard != 0 && row.Source != SourceDecision {
			t.Errorf("%+v", row)
		}
		seen[row.Reason] = true
		guard = max(guard, row.Guard)
	}
	if unknown := Reason("Newer"); unknown.IsWarning() || unknown.LacksEvidence() {
		t.Errorf("%+v", unknown.row())
	}
}
