// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// budgetSpan is the time in which spec.flavor.maxChangesPerDay counts changes.
	budgetSpan = 24 * time.Hour
	// effectSpan is how long a change without effect counts. Load may be different after a week.
	effectSpan = 7 * 24 * time.Hour
	// effectPoints is the reduction, in percentage points, below which a change counts as without effect.
	effectPoints = 5
	// contestSpan is how long after our change a smaller flavor of another writer counts as a contest.
	contestSpan = 24 * time.Hour
	// contestKept is how long a contest prevents changes of flavor, so that two tools do not restart a database in
	// turn.
	contestKept = 7 * 24 * time.Hour
	// findingRequeue is when a flavor is checked again that would not help. The load may change, and each check reads it.
	findingRequeue = 5 * time.Minute
	// fleetRequeue is when a flavor that waits for --max-flavor-changes is checked again.
	fleetRequeue = time.Minute
)

// checkHistory checks cooldown, budget, effect, contest, the limit for the cluster and the window. It returns a
// decision without a reason if none of them prevents a change.
func (c Case) checkHistory(d Decision, alarms []Alarm) Decision {
	ours := c.ourFlavorChanges()
	if len(ours) > 0 {
		ended := endTime(ours[0])
		if remaining := c.cooldown() - c.Now.Sub(ended); remaining > 0 {
			return d.decline(ReasonCooldown, remaining, "The flavor changed at %s, and the cooldown is %s", at(ended),
				durationText(c.cooldown()))
		}
	}
	if most := int(c.Spec.Flavor.MaxChangesPerDay); most > 0 && len(ours) >= most {
		if remaining := budgetSpan - c.Now.Sub(startTime(ours[most-1])); remaining > 0 {
			return d.decline(ReasonBudgetSpent, remaining,
				"The flavor changed %s in 24 hours, as often as spec.flavor.maxChangesPerDay allows", timesText(most))
		}
	}
	for _, a := range alarms {
		if held, ok := c.checkEffect(a, ours); ok {
			return held
		}
	}
	if held, ok := c.checkFinding(d, alarms); ok {
		return held
	}
	if held := c.checkContest(d); held.Reason != "" {
		return held
	}
	if c.FleetBusy {
		return d.decline(ReasonFleetBrake, fleetRequeue,
			"The flavor waits, because as many flavors as --max-flavor-changes allows are changing in the cluster")
	}
	if opens := c.untilWindowOpens(); opens > 0 {
		return d.decline(ReasonOutsideWindow, opens, "The window is closed. The flavor change is kept until it opens")
	}
	return Decision{}
}

// ourFlavorChanges returns our changes of flavor, newest first, including lost ones.
func (c Case) ourFlavorChanges() []v1alpha1.Change {
	return slices.DeleteFunc(slices.Clone(c.Status.Changes), func(ch v1alpha1.Change) bool {
		return ch.Kind != v1alpha1.KindFlavor || ch.By != v1alpha1.ByAutopilot
	})
}

func (c Case) cooldown() time.Duration {
	return time.Duration(valueOr(c.Spec.Flavor.CooldownSeconds, 3600)) * time.Second
}

// timesText returns "once" or a number of times.
func timesText(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// startTime returns when a change started: see Started. An earlier version stored only when it was decided. A change of
// another writer has only the time at which it was found.
func startTime(ch v1alpha1.Change) time.Time {
	switch {
	case ch.StartTime != nil:
		return ch.StartTime.Time
	case ch.DecisionTime != nil:
		return ch.DecisionTime.Time
	}
	return ch.CompletionTime.Time
}

// endTime returns the later of start and completion, because the clock may have been set back between them.
func endTime(ch v1alpha1.Change) time.Time {
	if d := startTime(ch); d.After(ch.CompletionTime.Time) {
		return d
	}
	return ch.CompletionTime.Time
}

// checkEffect reports whether the last two changes for this metric did not help: each time the alarm was in force again
// at nearly the former value. It does not matter that the alarm cleared between them. The first
// hour with the new flavor counts as well if it was no lower. A lower one does not show an effect, because caches fill
// slowly.
func (c Case) checkEffect(a Alarm, ours []v1alpha1.Change) (d Decision, held bool) {
	valueNow := a.Evidence.Percent
	ineffective := 0
	for _, ch := range ours {
		if ch.Outcome != v1alpha1.OutcomeCompleted || len(ch.Metrics) == 0 || ch.Metrics[0] != a.Metric {
			continue
		}
		before, err := strconv.ParseFloat(ch.ValuePercent, 64)
		remaining := effectSpan - c.Now.Sub(ch.CompletionTime.Time)
		if after, ok := percentAfter(ch, a.Metric); ok {
			valueNow = max(valueNow, after)
		}
		if err != nil || remaining <= 0 || ch.Generation != c.Generation || valueNow < before-effectPoints {
			return d, false
		}
		if ineffective++; ineffective == 2 {
			d = c.newDecision(a)
			d.From = c.Instance.Flavor
			return d.decline(ReasonNoEffect, remaining,
				"The last two larger flavors did not reduce %s, which is at %.1f %% again. The autopilot tries no third one unless the spec changes", metricRow(a.Metric).Label, a.Evidence.Percent), true
		}
		valueNow = before
	}
	return d, false
}

// checkContest prevents changes of flavor for a week after another writer has replaced ours by a smaller one.
func (c Case) checkContest(d Decision) Decision {
	at, ours, ok := c.contest()
	if !ok {
		return Decision{}
	}
	return d.decline(ReasonContested, contestKept-c.Now.Sub(at), "%s", c.contestText(ours))
}

func (c Case) contestText(ours v1alpha1.Change) string {
	return fmt.Sprintf("%s replaced flavor %s by %s. The flavor stays for 7 days unless the spec changes", c.otherWriter(),
		ours.To, c.Wanted.Flavor)
}

// restoredFlavor returns our last change if another writer has restored the flavor from before it. The operator then
// makes the database smaller, although no alarm is in force. This needs no catalogue, because the flavor is the same.
func (c Case) restoredFlavor() (v1alpha1.Change, bool) {
	_, ours, ok := c.contest()
	return ours, ok && c.Wanted.Flavor == ours.From
}

// NeedsWriter reports whether the next decision or condition names the writer that reverted our last change of that
// kind. The caller then reads its field manager.
func (c Case) NeedsWriter(kind v1alpha1.ChangeKind) bool {
	if c.NoRds || c.OtherWriter != "" {
		return false
	}
	if len(c.Alarms) > 0 {
		return c.IsReverted(kind)
	}
	_, restored := c.restoredFlavor()
	return restored && kind == v1alpha1.KindFlavor && !meta.IsStatusConditionTrue(c.Status.Conditions,
		v1alpha1.ConditionContested)
}

// contest returns our change that another writer replaced by a smaller flavor within a day, and when a check first
// found that. A contest ends when the spec changes, when the Rds requests our flavor or a larger one, or after 7 days.
func (c Case) contest() (at time.Time, last v1alpha1.Change, ok bool) {
	ours := c.ourFlavorChanges()
	if len(ours) == 0 || ours[0].Generation != c.Generation || !c.isSmaller(c.Wanted.Flavor, ours[0]) {
		return at, last, false
	}
	last = ours[0]
	until := startTime(last).Add(contestSpan)
	if c.Now.Before(until) {
		at = c.Now
	}
	seen := func(t time.Time) {
		if t.Before(until) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if last.Outcome == v1alpha1.OutcomeLost {
		seen(last.CompletionTime.Time)
	}
	for _, ch := range c.Status.Changes {
		if ch.Kind == v1alpha1.KindFlavor && ch.By == v1alpha1.ByOther && ch.CompletionTime.After(startTime(last)) &&
			c.isSmaller(ch.To, last) {
			seen(ch.CompletionTime.Time)
		}
	}
	return at, last, !at.IsZero() && c.Now.Sub(at) < contestKept
}

// IsReverted reports whether another writer reverted our last change of that kind. Only then does the caller need to
// read the field manager of that writer.
func (c Case) IsReverted(kind v1alpha1.ChangeKind) bool {
	if kind == v1alpha1.KindVolume {
		_, ok := c.revertedSize()
		return ok
	}
	_, _, ok := c.contest()
	return ok
}

// isSmaller reports whether a flavor is smaller than the one that our change requested. Without a catalogue, every
// other flavor counts as smaller, so that a contest does not end because the catalogue cannot be read.
func (c Case) isSmaller(code string, ours v1alpha1.Change) bool {
	if c.Catalogue == nil {
		return code != ours.To
	}
	is, known := flavors.Find(c.Catalogue, code)
	was, knownToo := flavors.Find(c.Catalogue, ours.To)
	if known && knownToo {
		return is.VCPUs < was.VCPUs || is.MemoryGB < was.MemoryGB
	}
	return code == ours.From
}

// checkRolledBack prevents changes of flavor for a day after the cloud reverted ours although the Rds requested it,
// even if ours is back by now. An operator that applies old requests again moves back and forth between flavors.
func (c Case) checkRolledBack(d Decision) (Decision, bool) {
	for _, ch := range c.Status.Changes {
		if ch.Kind != v1alpha1.KindFlavor || ch.Outcome != v1alpha1.OutcomeRolledBack {
			continue
		}
		if remaining := contestSpan - c.Now.Sub(ch.CompletionTime.Time); remaining > 0 {
			return d.decline(ReasonRolledBack, remaining,
				"The cloud reverted the flavor from %s to %s at %s, although the Rds requested the former. The flavor stays for 24 hours", ch.From, ch.To, at(ch.CompletionTime.Time)), true
		}
	}
	return d, false
}
