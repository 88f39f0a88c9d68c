// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

func heldSince(kind v1alpha1.ChangeKind, reason autopilot.Reason, age time.Duration) v1alpha1.Held {
	return v1alpha1.Held{Kind: kind, Reason: string(reason), SinceTime: metav1.NewTime(cases.Noon().Add(-age))}
}

func TestHeldChangeHasTheReasonOfTheLastDecisionAndKeepsItsTime(t *testing.T) {
	const volume, flavor = v1alpha1.KindVolume, v1alpha1.KindFlavor
	before := func(c *autopilot.Case) {
		c.Status.Held = []v1alpha1.Held{heldSince(volume, autopilot.ReasonQuotaExceeded, 20*time.Minute)}
	}
	grown := func(c *autopilot.Case) {
		c.Status.Changes = []v1alpha1.Change{cases.GrownVolume("90", "100", 5*time.Minute)}
	}
	ended := cases.StorageAt(50)
	ended.State = v1alpha1.StateOK
	silent := cases.StorageAt(92)
	silent.State = v1alpha1.StateOK
	cpuOff := func(c *autopilot.Case) {
		c.Spec.Flavor.CPU.Enabled, c.Spec.Flavor.Memory.Enabled = new(false), new(false)
	}
	full, cpu := cases.StorageAt(95), cases.UsageAt(v1alpha1.MetricCPU, 95)
	for name, tc := range map[string]struct {
		alarm  autopilot.Alarm
		alter  func(*autopilot.Case)
		answer *Answer
		reason autopilot.Reason // empty if nothing is held
		since  time.Duration
	}{
		"API server refuses the patch": {full, nil, &Answer{Reason: autopilot.ReasonRefused, Message: "no"},
			autopilot.ReasonRefused, 0},
		"patch reverted at once":   {full, nil, &Answer{Reason: autopilot.ReasonContested}, autopilot.ReasonContested, 0},
		"a guard stops the growth": {full, cases.Steps(10, 100), nil, autopilot.ReasonCapReached, 0},
		"a guard stops a held growth": {full, cases.Both(before, cases.Steps(10, 100)), nil,
			autopilot.ReasonCapReached, 20 * time.Minute},
		"the rule is silent": {silent, overThreshold(3 * time.Minute), nil,
			autopilot.ReasonRuleSilent, 3 * time.Minute},
		"in progress": {full, cases.PendingVolume(time.Minute), nil,
			autopilot.ReasonChangePending, 0},
		"in progress after a refusal": {full, cases.Both(cases.PendingVolume(time.Minute), before), nil,
			autopilot.ReasonQuotaExceeded, 20 * time.Minute},
		"Cloud Eye does not answer": {cases.WithoutEvidence(cases.WithoutState(full)), before, nil,
			autopilot.ReasonQuotaExceeded, 20 * time.Minute},
		"Cloud Eye does not answer, and the volume has grown": {cases.WithoutEvidence(cases.WithoutState(full)), cases.Both(before, grown), nil,
			"", 0},
		"the storage alarm could not be read": {cases.UsageAt(v1alpha1.MetricCPU, 10), before, nil,
			autopilot.ReasonQuotaExceeded, 20 * time.Minute},
		"another growth is needed after a growth": {cases.WithoutEvidence(full), cases.Both(before, grown), nil,
			autopilot.ReasonNoData, 5 * time.Minute},
		"below the threshold":              {cases.StorageAt(50), before, nil, "", 0},
		"the alarm has ended":              {ended, before, nil, "", 0},
		"flavor: a guard stops the change": {cpu, cases.SoldOut("eu-de-01"), nil, autopilot.ReasonSoldOut, 0},
		"flavor: the metrics are disabled": {cpu, cpuOff, nil, "", 0},
	} {
		c := cases.Quiet()
		if tc.alter != nil {
			tc.alter(&c)
		}
		c, v := decided(cases.With(c, tc.alarm))
		kind := volume
		if strings.HasPrefix(name, "flavor") {
			kind = flavor
		}
		var got, want []v1alpha1.Held
		if tc.answer != nil {
			tc.answer.Attempt, _ = change.Pending(c.Status.Changes, kind)
			tc.answer.Event, tc.answer.Acting = change.Rejected, v.Decisions
			tc.answer.Record(c, &c.Status)
		}
		for _, h := range c.Status.Held {
			if h.Kind == kind {
				got = append(got, h)
			}
		}
		if tc.reason != "" {
			want = []v1alpha1.Held{heldSince(kind, tc.reason, tc.since)}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func overThreshold(age time.Duration) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Status.OverThresholdSince = autopilot.Seconds(c.Now.Add(-age)) }
}
