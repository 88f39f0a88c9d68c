// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// warningsOf stores the warnings of a case in the status and returns the new ones, one a line.
func warningsOf(c autopilot.Case, s *v1alpha1.Status) string {
	var lines []string
	for _, w := range UpdateWarnings(c, s) {
		lines = append(lines, string(w.Reason)+": "+w.Message)
	}
	return strings.Join(lines, "\n")
}

// warnedAt checks a volume of that size, as the loop does, and returns the new warnings.
func warnedAt(c *autopilot.Case, gb int) string {
	c.Instance = &autopilot.Instance{ID: "id", Status: autopilot.StatusActive, VolumeGB: gb, Flavor: "f"}
	status := FollowUp(*c).Status
	warned := warningsOf(*c, &status)
	c.Status = *status.DeepCopy() // as after a restart
	return warned
}

func TestUpdateWarningsReportsEachThresholdOnce(t *testing.T) {
	const day = 24 * time.Hour
	type look struct {
		after time.Duration
		gb    int
		want  string // empty: no warning
	}
	near := "NearCap: Storage has 80 GB, 80 % of its limit of 100 GB (spec.storage.maxGB). Raise maxGB or free space before it stops growing"
	full := "CapReached: Storage is at its limit: 100 GB (spec.storage.maxGB is 100). Raise maxGB or free space"
	for _, tc := range []struct {
		name  string
		maxGB int32
		looks []look
	}{
		{"at 80 % and at the cap, each once", 100, []look{{0, 70, ""}, {day, 80, near}, {time.Minute, 80, ""}, {0, 90, ""}, {day, 90, ""}, {day, 100, full}, {time.Minute, 100, ""}, {9 * day, 100, ""}}},
		{"a cap at the present size from the beginning", 100, []look{{0, 100, full}, {day, 100, ""}}},
		{"far below the cap", 4000, []look{{0, 100, ""}, {day, 110, ""}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := autopilot.Case{Now: cases.Noon(), Spec: cases.Policy()}
			c.Spec.Storage.MaxGB = tc.maxGB
			for i, l := range tc.looks {
				c.Now = c.Now.Add(l.after)
				if got := warnedAt(&c, l.gb); got != l.want {
					t.Errorf("look %d, at %d GB: %q, want %q", i+1, l.gb, got, l.want)
				}
			}
		})
	}
	t.Run("a lowered cap causes another warning", func(t *testing.T) {
		c := autopilot.Case{Now: cases.Noon(), Spec: cases.Policy()}
		for i, limit := range []int32{100, 200, 200, 100} {
			c.Spec.Storage.MaxGB = limit
			if got := warnedAt(&c, 100); (got != "") != (limit == 100) {
				t.Errorf("look %d, cap %d GB: %q", i+1, limit, got)
			}
		}
	})
}

func TestLimitedIsTrueAtACapUntilTheAlarmEnds(t *testing.T) {
	c := cases.Quiet()
	c.Spec.Storage.StepGB, c.Spec.Storage.MaxGB = 50, 120
	limited := func(when string, want bool, says string) {
		t.Helper()
		v := verdictOf(c)
		c.Status = Outcome(c, v).Status
		got := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionLimited)
		if on := got.Status == "True"; on != want || !strings.Contains(got.Message, says) {
			t.Errorf("%s: %s (%s), want %t and %q", when, got.Status, got.Message, want, says)
		}
		if want && got.Reason != string(autopilot.ReasonCapReached) {
			t.Errorf("%s: reason %s", when, got.Reason)
		}
	}
	limited("no alarm", false, "Within limits")
	c.Alarms = []autopilot.Alarm{cases.StorageAt(93)}
	limited("the last step is clamped", true, "Storage 100 → 120 GB: 93.0 % used, alarm at 85 %; 150 GB are needed, clamped to spec.storage.maxGB")
	c.Wanted.VolumeGB = 120
	limited("while it is in progress", true, "150 GB are needed")
	c.Instance.VolumeGB = 120
	c.Status = FollowUp(c).Status
	limited("once the volume has grown", false, "")
	c.Alarms = []autopilot.Alarm{cases.StorageAt(115)}
	limited("at the cap", true, "Storage stays at 120 GB: 95.8 % used, but spec.storage.maxGB is 120")
	c.Alarms = []autopilot.Alarm{cases.WithoutEvidence(cases.StorageAt(115))}
	limited("while Cloud Eye has no data", true, "Storage stays at 120 GB")
	c.Alarms = nil
	limited("the alarm has ended", false, "")
	c.Alarms = []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}
	c.Spec.Flavor.MaxVCPUs = new(int32(8))
	limited("a cap of flavors", true, "above the caps of 8 vCPUs and 128 GB")
	c.Spec.Storage.MaxGB = 400
	c.Alarms = append(c.Alarms, cases.StorageAt(115))
	limited("a cap of flavors while storage acts", true, "above the caps of 8 vCPUs and 128 GB")
	c.Alarms = c.Alarms[:1]
	c.Status.Changes = nil
	c.Spec.Flavor.MaxVCPUs, c.Generation = new(int32(16)), 2
	limited("a new cap", false, "")
}

func TestUpdateWarningsReportsASmallerReplicaOnce(t *testing.T) {
	c := cases.Quiet()
	c.Instance.Name = "orders"
	c.Instance.Replicas = []autopilot.Replica{
		{Name: "same", VolumeGB: 100}, {Name: "larger", VolumeGB: 120}, {Name: "unknown"}, {Name: "reader", VolumeGB: 90},
		{Name: "managed", VolumeGB: 90, IsManaged: true},
	}
	const message = "Storage of the primary orders has 100 GB, and a read replica has less: reader (90 GB). " +
		"Grow the replica to the same size, or create an RdsAutopilot for it"
	for _, want := range []string{"ReplicaSmaller: " + message, ""} {
		if got := warningsOf(c, &c.Status); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestUpdateWarningsReportsAReadOnlyDatabaseAndASilentRuleOnce(t *testing.T) {
	c := cases.Quiet(cases.StorageAt(93))
	cases.ReadOnly(&c)
	a := &c.Alarms[0]
	a.State = v1alpha1.StateOK
	overThreshold(15 * time.Minute)(&c)
	first := warningsOf(c, &c.Status)
	for _, want := range []string{
		`RuleSilent: Cloud Eye reports "ok" for the storage rule, although storage has been over its threshold since ` +
			"2026-11-20T11:45:00Z or earlier (93.0 of 100 GB used). ",
		"ReadOnly: The database has been read-only since 2026-11-20T11:00:00Z. " +
			"With 100 GB it is writable again once at most 87 GB are used. ",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("%q, want %q", first, want)
		}
	}
	if again := warningsOf(c, &c.Status); again != "" {
		t.Errorf("warned twice: %s", again)
	}
	overThreshold(15*time.Minute - time.Second)(&c)
	c.Status.Warned = nil
	if early := warningsOf(c, &c.Status); strings.Contains(early, "RuleSilent") {
		t.Errorf("a second before the rule is overdue: %s", early)
	}
}
