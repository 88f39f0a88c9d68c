// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// How long the past counts.
const (
	budgetSpan   = 24 * time.Hour
	effectSpan   = 7 * 24 * time.Hour // a change without effect is remembered
	effectPoints = 5                  // percent: a metric that comes back this close was not brought down
	contestSpan  = 24 * time.Hour     // after a change of ours, a smaller flavor is a contest …
	contestKept  = 7 * 24 * time.Hour // … which is remembered
	fleetAgain   = time.Minute
)

// checkHistory checks what was done to the flavor before, what came of it, and whether now is the time: cooldown, budget,
// effect, contest, the limit for the cluster and the window. A decision without a reason holds nothing back.
func (c Case) checkHistory(d Decision, alarms []Alarm) Decision {
	ours := c.ourFlavorChanges()
	if len(ours) > 0 {
		since := c.Now.Sub(endTime(ours[0]))
		if remaining := c.cooldown() - since; remaining > 0 {
			return d.decline(ReasonCooldown, remaining, "The flavor changed %s ago, and the cooldown is %s", durationText(since), durationText(c.cooldown()))
		}
	}
	if most := int(c.Spec.Flavor.MaxChangesPerDay); most > 0 && len(ours) >= most {
		if remaining := budgetSpan - c.Now.Sub(decisionTime(ours[most-1])); remaining > 0 {
			return d.decline(ReasonBudgetSpent, remaining, "The flavor changed %s in 24 hours, as often as spec.flavor.maxChangesPerDay allows", timesText(most))
		}
	}
	for _, a := range alarms {
		if held, ok := c.checkEffect(a, ours); ok {
			return held
		}
	}
	if held := c.checkContest(d); held.Reason != "" {
		return held
	}
	if c.FleetBusy {
		return d.decline(ReasonFleetBrake, fleetAgain, "As many flavors as --max-flavor-changes allows are changing in the cluster: this one waits")
	}
	if opens := c.untilWindowOpens(); opens > 0 {
		return d.decline(ReasonOutsideWindow, opens, "The window is closed: the wish is kept until it opens at %s", at(c.Now.Add(opens)))
	}
	return Decision{}
}

// ourFlavorChanges are our changes of flavor, newest first, lost ones included.
func (c Case) ourFlavorChanges() []v1alpha1.Change {
	return slices.DeleteFunc(slices.Clone(c.Status.Changes), func(ch v1alpha1.Change) bool {
		return ch.Kind != v1alpha1.KindFlavor || ch.By != v1alpha1.ByAutopilot
	})
}

func (c Case) cooldown() time.Duration {
	return time.Duration(valueOr(c.Spec.Flavor.CooldownSeconds, 3600)) * time.Second
}

func timesText(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func decisionTime(ch v1alpha1.Change) time.Time {
	if ch.DecisionTime != nil {
		return ch.DecisionTime.Time
	}
	return ch.CompletionTime.Time
}

// endTime is the later of decision and completion: a clock may have jumped between.
func endTime(ch v1alpha1.Change) time.Time {
	if d := decisionTime(ch); d.After(ch.CompletionTime.Time) {
		return d
	}
	return ch.CompletionTime.Time
}

// checkEffect reports whether the last two changes for this metric did not help it: each time it was in force again at
// nearly the value of before. That it cleared in between counts for nothing.
func (c Case) checkEffect(a Alarm, ours []v1alpha1.Change) (d Decision, held bool) {
	valueNow := a.Evidence.Percent
	ineffective := 0
	for _, ch := range ours {
		if ch.Outcome != v1alpha1.OutcomeCompleted || len(ch.Metrics) == 0 || ch.Metrics[0] != a.Metric {
			continue
		}
		before, err := strconv.ParseFloat(ch.ValuePercent, 64)
		remaining := effectSpan - c.Now.Sub(ch.CompletionTime.Time)
		if err != nil || remaining <= 0 || ch.Generation != c.Generation || valueNow < before-effectPoints {
			return d, false
		}
		if ineffective++; ineffective == 2 {
			d = c.newDecision(a)
			d.From = c.Instance.Flavor
			return d.decline(ReasonNoEffect, remaining, "Two larger flavors in a row did not bring %s down, which is at %.1f %% again: a third is no cure, unless the spec changes", metricRow(a.Metric).Label, a.Evidence.Percent), true
		}
		valueNow = before
	}
	return d, false
}

// checkContest holds flavors for a week where somebody put a smaller one in place of ours.
func (c Case) checkContest(d Decision) Decision {
	at, ours, ok := c.contest()
	if !ok {
		return Decision{}
	}
	return d.decline(ReasonContested, contestKept-c.Now.Sub(at), "%s put %s in place of %s: the flavor is not changed for 7 days, unless the spec changes", c.rival(), c.Wanted.Flavor, ours.To)
}

// contest is the change of ours in whose place somebody put a smaller flavor within a day, and when that was seen. It ends
// with a new spec, when the Rds asks for ours or a larger one, or after 7 days.
func (c Case) contest() (at time.Time, last v1alpha1.Change, ok bool) {
	ours := c.ourFlavorChanges()
	if len(ours) == 0 || ours[0].Generation != c.Generation || !c.isSmaller(c.Wanted.Flavor, ours[0]) {
		return at, last, false
	}
	last = ours[0]
	until := decisionTime(last).Add(contestSpan)
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
		if ch.Kind == v1alpha1.KindFlavor && ch.By == v1alpha1.ByOther && ch.CompletionTime.After(decisionTime(last)) && c.isSmaller(ch.To, last) {
			seen(ch.CompletionTime.Time)
		}
	}
	return at, last, !at.IsZero() && c.Now.Sub(at) < contestKept
}

// Interfered reports whether somebody undid our last change of that kind: then it is worth reading whose manager it was.
func (c Case) Interfered(kind v1alpha1.ChangeKind) bool {
	if kind == v1alpha1.KindVolume {
		_, ok := c.sizeTakenBack()
		return ok
	}
	_, _, ok := c.contest()
	return ok
}

// isSmaller reports whether a flavor is smaller than the one a change of ours asked for. Without a catalogue any other one
// counts as smaller: that alone decides nothing, but keeps a contest from being forgotten.
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

// checkRolledBack holds flavors for a day after the cloud left one of ours although the Rds asked for it, whether or not it
// came back: an operator that replays older wishes goes back and forth.
func (c Case) checkRolledBack(d Decision) (Decision, bool) {
	for _, ch := range c.Status.Changes {
		if ch.Kind != v1alpha1.KindFlavor || ch.Outcome != v1alpha1.OutcomeRolledBack {
			continue
		}
		if remaining := contestSpan - c.Now.Sub(ch.CompletionTime.Time); remaining > 0 {
			return d.decline(ReasonRolledBack, remaining, "The cloud went back from %s to %s by itself at %s, though the Rds asked for the former: the flavor is not changed for 24 hours", ch.From, ch.To, at(ch.CompletionTime.Time)), true
		}
	}
	return d, false
}
