// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

func TestDecideGrowsStorageBeforeItChangesTheFlavor(t *testing.T) {
	v := verdictOf(cases.Quiet(cases.UsageAt(v1alpha1.MetricCPU, 95), cases.StorageAt(93)))
	if v.Change == nil || v.Change.Kind != v1alpha1.KindVolume {
		t.Fatalf("intent %+v, want the volume", v.Change)
	}
	if len(v.Decisions) != 1 || v.Decisions[0].Metric != v1alpha1.MetricStorage {
		t.Fatalf("decisions %+v, want storage alone", v.Decisions)
	}
}

func TestDecideMakesOneChangeForCPUAndMemory(t *testing.T) {
	v := verdictOf(cases.Quiet(cases.UsageAt(v1alpha1.MetricCPU, 95), cases.UsageAt(v1alpha1.MetricMemory, 97)))
	if v.Change == nil || v.Change.To != "rds.mysql.n1.4xlarge.4" || len(v.Change.Metrics) != 2 {
		t.Fatalf("intent %+v, want one for both", v.Change)
	}
	if len(v.Decisions) != 2 || !v.Decisions[0].Acts() || !v.Decisions[1].Acts() {
		t.Errorf("decisions %+v, want one for each alarm", v.Decisions)
	}
}

func TestDecideChangesTheFlavorForOneMetricWhenTheOtherHasNoEffect(t *testing.T) {
	c := cases.Quiet()
	cases.Both(cases.Changed(30*time.Hour, "94.0"), cases.Changed(60*time.Hour, "97.0"))(&c)
	v := verdictOf(cases.With(c, cases.UsageAt(v1alpha1.MetricCPU, 95), cases.UsageAt(v1alpha1.MetricMemory, 97)))
	if v.Change == nil || len(v.Change.Metrics) != 1 || v.Change.Metrics[0] != v1alpha1.MetricMemory {
		t.Fatalf("intent %+v, want one for memory", v.Change)
	}
	if len(v.Decisions) != 2 || !v.Decisions[1].Acts() || v.Decisions[0].Reason != autopilot.ReasonNoEffect || v.Decisions[0].Metric != v1alpha1.MetricCPU {
		t.Errorf("decisions %+v", v.Decisions)
	}
	cases.InStatus("MODIFYING")(&c)
	for _, d := range verdictOf(cases.With(c, cases.UsageAt(v1alpha1.MetricCPU, 95), cases.UsageAt(v1alpha1.MetricMemory, 97))).Decisions {
		if d.Reason != autopilot.ReasonInstanceBusy {
			t.Errorf("%s: %s, want InstanceBusy for both", d.Metric, d.Reason)
		}
	}
}

func TestEndedAlarmIsRecordedOnce(t *testing.T) {
	c := cases.Quiet(cleared(cases.StorageAt(50)))
	for _, want := range []int{1, 0} {
		v := verdictOf(c)
		if len(v.Decisions) != want {
			t.Errorf("%+v, want %d decisions", v.Decisions, want)
		}
		record.Decisions(&c.Status, v.Decisions, c.Now)
	}
}

func TestDecideKeepsTheTimeOfAnUnpatchedIntent(t *testing.T) {
	c := cases.Quiet()
	cases.AddPending(&c.Status, cases.PendingTo(v1alpha1.KindVolume, "100", "110", time.Minute))
	v := verdictOf(cases.With(c, cases.StorageAt(96)))
	if v.Change == nil || !v.Change.DecisionTime.Time.Equal(cases.Noon().Add(-time.Minute)) {
		t.Fatalf("intent %+v, want the decision time of the first", v.Change)
	}
}

func TestDecisionWithoutAnAlarmCountsFromWhenItsNeedBegan(t *testing.T) {
	for name, tc := range map[string]struct {
		alter func(*autopilot.Case)
		want  time.Duration // ago
	}{
		"used space over the threshold for 15 minutes": {overdue(15 * time.Minute), 15 * time.Minute},
		"read-only for an hour":                        {cases.ReadOnly, time.Hour},
	} {
		d := verdictOf(altered(tc.alter, ended(cases.StorageAt(93)))).Decisions[0]
		if !d.Since.Equal(cases.Noon().Add(-tc.want)) {
			t.Errorf("%s: since %s, want %s ago", name, d.Since, tc.want)
		}
	}
}

// The size of a person is no step of ours. One of our own earlier decision is, although the used space is lower now.
func TestSizeThatTheRdsRequestsIsThePersonsUnlessWeDecidedIt(t *testing.T) {
	for name, tc := range map[string]struct {
		alter func(*autopilot.Case)
		want  v1alpha1.Author
	}{
		"a person's": {func(c *autopilot.Case) { c.Wanted.VolumeGB = 150 }, v1alpha1.ByOther},
		"ours": {func(c *autopilot.Case) {
			c.Wanted.VolumeGB = 150
			cases.AddPending(&c.Status, cases.PendingTo(v1alpha1.KindVolume, "100", "150", time.Hour))
			c.Status.Changes[0].Refusal = &v1alpha1.Refusal{Count: 1, Time: cases.Ago(time.Hour), Reason: "CloudRefused"}
		}, v1alpha1.ByAutopilot},
	} {
		c := cases.Quiet(cases.StorageAt(88))
		c.Spec.Apply = v1alpha1.ApplyCloud
		tc.alter(&c)
		if v := verdictOf(c); v.Change == nil || v.Change.To != "150" || v.Change.By != tc.want {
			t.Errorf("%s: %+v, want 150 GB by %s", name, v.Change, tc.want)
		}
	}
}
