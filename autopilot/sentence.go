package autopilot

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// no is a decision to do nothing: its reason, its sentence and when to look again, which the sentence says as well.
func (d Decision) no(r Reason, again time.Duration, format string, args ...any) Decision {
	d.Action, d.Reason, d.Again, d.Message = ActionNone, r, again, fmt.Sprintf(format, args...)
	if again > 0 {
		d.Message += "; looking again in " + spell(again)
	}
	return d
}

// spell is a duration in words, in the two largest units that matter, rounded up.
func spell(d time.Duration) string {
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

// spoken is the name of a metric within a sentence.
func spoken(m v1alpha1.Metric) string {
	if m == v1alpha1.MetricCPU {
		return "CPU"
	}
	return string(m)
}

// at is a time in a sentence.
func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// usage says what the alarms are about.
func (c Case) usage(alarms []Alarm) string {
	var parts []string
	for _, a := range alarms {
		if !a.Wished.IsZero() {
			parts = append(parts, fmt.Sprintf("%s was in alarm at %s, and the window is open", spoken(a.Metric), at(a.Wished)))
			continue
		}
		parts = append(parts, fmt.Sprintf("%.1f %% %s used, alarm at %d %%", a.Evidence.Percent, spoken(a.Metric), given(c.Spec, a.Metric)))
	}
	return strings.Join(parts, "; ")
}

// change names an intent as people do.
func change(i v1alpha1.Intent) string { return step(i.Kind, i.From, i.To) }

func step(kind v1alpha1.ChangeKind, from, to string) string {
	if kind == v1alpha1.KindVolume {
		return fmt.Sprintf("Storage %s → %s GB", from, to)
	}
	return fmt.Sprintf("Flavor %s → %s", from, to)
}

// Ended says in a sentence how a change ended.
func Ended(ch v1alpha1.Change) string {
	what := step(ch.Kind, ch.From, ch.To)
	switch {
	case ch.Outcome == v1alpha1.OutcomeRolledBack:
		return what + ": the cloud left a flavor that the Rds still asked for"
	case ch.By == v1alpha1.ByOther:
		return what + ": somebody else changed it"
	case ch.Outcome == v1alpha1.OutcomeLost:
		if ch.Count > 1 {
			what += fmt.Sprintf(" (%s)", times(int(ch.Count)))
		}
		return what + " is lost: the Rds no longer asks for it, and the cloud has not got it"
	case ch.DecisionTime != nil:
		return fmt.Sprintf("%s is done, %s after it was decided", what, spell(ch.CompletionTime.Sub(ch.DecisionTime.Time)))
	}
	return what + " is done"
}
