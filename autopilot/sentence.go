// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"math"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// DurationText returns a duration in words, in at most two units, rounded up.
func DurationText(d time.Duration) string {
	count := func(n int64, unit string) string {
		if n == 1 {
			return "1 " + unit
		}
		return fmt.Sprintf("%d %ss", n, unit)
	}
	two := func(d, large, small time.Duration, largeUnit, smallUnit string) string {
		n := int64(math.Ceil(float64(d) / float64(small)))
		each := int64(large / small)
		if n%each == 0 {
			return count(n/each, largeUnit)
		}
		return count(n/each, largeUnit) + " " + count(n%each, smallUnit)
	}
	const day = 24 * time.Hour
	switch {
	case d <= 59*time.Second:
		return count(int64(math.Ceil(max(0, d.Seconds()))), "second")
	case d <= 59*time.Minute:
		return count(int64(math.Ceil(d.Minutes())), "minute")
	case d < 2*day:
		return two(d, time.Hour, time.Minute, "hour", "minute")
	}
	return two(d, day, time.Hour, "day", "hour")
}

// TimeText returns a time for a sentence.
func TimeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// DescribeIntent names a change in a sentence.
func DescribeIntent(i v1alpha1.Intent) string { return DescribeStep(i.Kind, i.From, i.To) }

// DescribeStep names a change from one size in GB or flavor to another.
func DescribeStep(kind v1alpha1.ChangeKind, from, to string) string {
	if kind == v1alpha1.KindVolume {
		return fmt.Sprintf("Storage %s → %s GB", from, to)
	}
	return fmt.Sprintf("Flavor %s → %s", from, to)
}

// DescribeChange returns a sentence that says how a change ended.
func DescribeChange(ch v1alpha1.Change) string {
	what := DescribeStep(ch.Kind, ch.From, ch.To)
	switch {
	case ch.Outcome == v1alpha1.OutcomeRolledBack:
		return what + ": the cloud reverted a flavor that the Rds still requests"
	case ch.By == v1alpha1.ByOther:
		return what + ": changed by another writer"
	case ch.Outcome == v1alpha1.OutcomeLost:
		if ch.Count > 1 {
			what += fmt.Sprintf(" (%s)", TimesText(int(ch.Count)))
		}
		return what + " is lost: the Rds no longer requests it, and the cloud did not make it"
	case ch.DecisionTime != nil:
		return fmt.Sprintf("%s is done, %s after the decision", what,
			DurationText(ch.CompletionTime.Sub(ch.DecisionTime.Time)))
	}
	return what + " is done"
}
