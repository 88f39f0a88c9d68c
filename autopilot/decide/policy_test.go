// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
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

// No schema knows the time zones. An error in the policy of flavors must not stop storage, because a full disk cannot wait
// until a person corrects it.
func TestInvalidWindowIsNamedAndStopsOnlyFlavors(t *testing.T) {
	for path, w := range map[string]v1alpha1.Window{
		"spec.flavor.window.days":              {Days: []v1alpha1.Day{"Saturday"}, Start: "00:00", End: "00:00", TimeZone: "UTC"},
		"spec.flavor.window.start":             {Start: "1", End: "00:00", TimeZone: "UTC"},
		"spec.flavor.window.end":               {Start: "00:00", End: "24:00", TimeZone: "UTC"},
		"spec.flavor.window.timeZone: unknown": {Start: "00:00", End: "00:00", TimeZone: "Europe/Berln"},
	} {
		c := cases.Quiet(cases.StorageAt(93), cases.UsageAt(v1alpha1.MetricCPU, 95))
		cases.Deferred("memory")(&c)
		c.Spec.Flavor.Window = &w
		v := verdictOf(c)
		if v.Change == nil || v.Change.Kind != v1alpha1.KindVolume {
			t.Errorf("%s: intent %+v", path, v.Change)
		}
		for _, d := range v.Decisions {
			isStopped := d.Reason == autopilot.ReasonPolicyInvalid && strings.Contains(d.Message, path)
			if isStopped == (d.Metric == v1alpha1.MetricStorage) {
				t.Errorf("%s: %s: %s: %s", path, d.Metric, d.Reason, d.Message)
			}
		}
	}
}

func TestDecideMakesADeferredChangeWhenTheWindowOpens(t *testing.T) {
	c := cases.Quiet()
	cases.InWindow("Sat", "01:00", "05:00")(&c)
	cases.ActiveFor(30 * 24 * time.Hour)(&c)
	at := func(day time.Time, alarm bool) autopilot.Verdict {
		c.Now = day
		c.Alarms = []autopilot.Alarm{{Metric: v1alpha1.MetricCPU, State: v1alpha1.StateOK}}
		if alarm {
			c.Alarms[0].State, c.Alarms[0].Evidence = v1alpha1.StateAlarm, autopilot.Evidence{Time: day, Percent: 95}
		}
		v := verdictOf(c)
		c.Status = record.Outcome(c, v).Status
		return v
	}
	wednesday := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	if v := at(wednesday, true); v.Change != nil || c.Status.Deferred == nil {
		t.Fatalf("on Wednesday: intent %+v, deferred %+v", v.Change, c.Status.Deferred)
	}
	v := at(wednesday.Add(time.Hour), false)
	if v.Change != nil || c.Status.Deferred == nil || v.RequeueAfter <= 0 {
		t.Fatalf("an hour later: intent %+v, deferred %+v, again in %s", v.Change, c.Status.Deferred, v.RequeueAfter)
	}
	v = at(wednesday.Add(time.Hour).Add(v.RequeueAfter), false)
	if v.Change == nil || v.Change.Kind != v1alpha1.KindFlavor {
		t.Fatalf("when the window opens: intent %+v, deferred %+v", v.Change, c.Status.Deferred)
	}
	if c.Status.Deferred == nil {
		t.Error("a change that may be refused is no longer deferred")
	}
	c.Wanted.Flavor = v.Change.To
	c.Status = record.FollowUp(c).Status
	if at(c.Now, false); c.Status.Deferred == nil {
		t.Error("a requested change that may leave no trace is no longer deferred")
	}
	c.Instance.Flavor = v.Change.To
	c.Status = record.FollowUp(c).Status
	if at(c.Now.Add(time.Minute), false); c.Status.Deferred != nil {
		t.Errorf("a completed change is still deferred: %+v", c.Status.Deferred)
	}
}

func TestDecideJoinsDeferredChangesOfSeveralDays(t *testing.T) {
	c := cases.Quiet()
	cases.InWindow("Sat", "01:00", "05:00")(&c)
	cases.ActiveFor(30 * 24 * time.Hour)(&c)
	for i, m := range []v1alpha1.Metric{v1alpha1.MetricCPU, v1alpha1.MetricMemory} {
		c.Now = time.Date(2026, 11, 18+i, 12, 0, 0, 0, time.UTC)
		c.Alarms = []autopilot.Alarm{{Metric: m, State: v1alpha1.StateAlarm, Evidence: autopilot.Evidence{Time: c.Now, Percent: 95}}}
		c.Status = record.Outcome(c, verdictOf(c)).Status
	}
	c.Now, c.Alarms = time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC), nil
	v := verdictOf(c)
	if v.Change == nil || len(v.Change.Metrics) != 2 || v.Change.To != "rds.mysql.n1.4xlarge.4" || v.Change.ValuePercent != "95.0" {
		t.Fatalf("intent %+v, want one for the CPU of Wednesday and the memory of Thursday", v.Change)
	}
	c.Spec.Flavor.CPU.Enabled, c.Spec.Flavor.Memory.ThresholdPercent = new(false), 99
	if v := verdictOf(c); v.Change != nil {
		t.Errorf("intent %+v for 95 %% of memory, alarm at 99 %%", v.Change)
	}
}
