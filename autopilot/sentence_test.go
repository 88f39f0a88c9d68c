// SPDX-License-Identifier: Apache-2.0

package autopilot_test

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

func TestDurationTextRoundsUpToTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 seconds", time.Second: "1 second", 29500 * time.Millisecond: "30 seconds", time.Minute: "1 minute", 61 * time.Second: "2 minutes",
		59*time.Minute + time.Second: "1 hour", time.Hour: "1 hour", 90 * time.Minute: "1 hour 30 minutes", 24 * time.Hour: "24 hours",
		48 * time.Hour: "2 days", 61*time.Hour + time.Minute: "2 days 14 hours", 7*24*time.Hour - time.Nanosecond: "7 days",
	} {
		if got := autopilot.DurationText(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

func TestDescribeChangeNamesOutcomeAndWriter(t *testing.T) {
	at := cases.Ago(4 * time.Minute)
	ours := v1alpha1.Change{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: "100", To: "110", Outcome: v1alpha1.OutcomeCompleted, DecisionTime: &at, CompletionTime: cases.Ago(0)}
	lost, theirs := ours, ours
	lost.Outcome, lost.Kind, lost.From, lost.To = v1alpha1.OutcomeLost, v1alpha1.KindFlavor, "a", "b"
	theirs.By, theirs.DecisionTime = v1alpha1.ByOther, nil
	for want, ch := range map[string]v1alpha1.Change{
		"Storage 100 → 110 GB is done, 4 minutes after the decision":                         ours,
		"Flavor a → b is lost: the Rds no longer requests it, and the cloud did not make it": lost,
		"Storage 100 → 110 GB: changed by another writer":                                    theirs,
	} {
		if got := autopilot.DescribeChange(ch); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
