// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// soon is the longest time to the next check that a message names as a duration. A longer one would be wrong for as
// long as the record is kept, so the message names the time.
const soon = 5 * time.Minute

// decline returns the decision to change nothing, with its reason, its message and the time until the next check. The
// message names the next check as well.
func (d Decision) decline(r Reason, wait time.Duration, format string, args ...any) Decision {
	d.Action, d.Reason, d.RequeueAfter, d.Message = ActionNone, r, wait, fmt.Sprintf(format, args...)
	if wait <= 0 {
		return d
	}
	next := "in " + durationText(wait)
	if wait > soon {
		next = "at " + at(d.Time.Add(wait))
	}
	d.Message = strings.TrimSuffix(d.Message, ".") + ". Next check " + next
	return d
}

// durationText returns a duration in words, in at most two units, rounded up.
func durationText(d time.Duration) string {
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

// at returns a time for a sentence.
func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// usage describes the measurements of the alarms.
func (c Case) usage(alarms []Alarm) string {
	var parts []string
	for _, a := range alarms {
		metric := metricRow(a.Metric)
		if !a.DeferredTime.IsZero() {
			parts = append(parts, fmt.Sprintf("%s was in alarm at %s, and the window is open", metric.Label, at(a.DeferredTime)))
			continue
		}
		parts = append(parts, fmt.Sprintf("%.1f %% %s used, alarm at %d %%", a.Evidence.Percent, metric.Label,
			metric.ConfiguredThreshold(c.Spec)))
	}
	return strings.Join(parts, "; ")
}

// describeIntent names a change in a sentence.
func describeIntent(i v1alpha1.Intent) string { return describeStep(i.Kind, i.From, i.To) }

func describeStep(kind v1alpha1.ChangeKind, from, to string) string {
	if kind == v1alpha1.KindVolume {
		return fmt.Sprintf("Storage %s → %s GB", from, to)
	}
	return fmt.Sprintf("Flavor %s → %s", from, to)
}

// DescribeChange returns a sentence that says how a change ended.
func DescribeChange(ch v1alpha1.Change) string {
	what := describeStep(ch.Kind, ch.From, ch.To)
	switch {
	case ch.Outcome == v1alpha1.OutcomeRolledBack:
		return what + ": the cloud reverted a flavor that the Rds still requests"
	case ch.By == v1alpha1.ByOther:
		return what + ": changed by another writer"
	case ch.Outcome == v1alpha1.OutcomeLost:
		if ch.Count > 1 {
			what += fmt.Sprintf(" (%s)", timesText(int(ch.Count)))
		}
		return what + " is lost: the Rds no longer requests it, and the cloud did not make it"
	case ch.DecisionTime != nil:
		return fmt.Sprintf("%s is done, %s after the decision", what,
			durationText(ch.CompletionTime.Sub(ch.DecisionTime.Time)))
	}
	return what + " is done"
}
