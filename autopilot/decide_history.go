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

// How long the past counts.
const (
	budgetSpan   = 24 * time.Hour
	effectSpan   = 7 * 24 * time.Hour // a change without effect is remembered
	effectPoints = 5                  // percent: a metric that comes back this close was not helped
	contestSpan  = 24 * time.Hour     // after a change of ours, a smaller flavor is a contest …
	contestKept  = 7 * 24 * time.Hour // … which is remembered
	fleetAgain   = time.Minute
)

// history holds the guards 8 to 11 for flavors: what was done before, what came of it, and whether now is the time. A
// decision without a reason lets pass.
func (c Case) history(d Decision, alarms []Alarm) Decision {
	ours := c.ours()
	if len(ours) > 0 {
		since := c.Now.Sub(endOf(ours[0]))
		if left := c.cooldown() - since; left > 0 {
			return d.no(ReasonCooldown, left, "The flavor changed %s ago, and the cooldown is %s", spell(since), spell(c.cooldown()))
		}
	}
	if most := int(c.Spec.Flavor.MaxChangesPerDay); most > 0 && len(ours) >= most {
		if left := budgetSpan - c.Now.Sub(decisionOf(ours[most-1])); left > 0 {
			return d.no(ReasonBudgetSpent, left, "The flavor changed %s in 24 hours, as often as spec.flavor.maxChangesPerDay allows", times(most))
		}
	}
	for _, a := range alarms {
		if held, ok := c.noEffect(a, ours); ok {
			return held
		}
	}
	if held := c.contested(d, ours); held.Reason != "" {
		return held
	}
	if c.FleetBusy {
		return d.no(ReasonFleetBrake, fleetAgain, "As many flavors as --max-flavor-changes allows are changing in the cluster: this one waits")
	}
	if opens := c.opens(); opens > 0 {
		return d.no(ReasonOutsideWindow, opens, "The window is closed: the wish is kept until it opens at %s", at(c.Now.Add(opens)))
	}
	return Decision{}
}

// ours are our changes of flavor, newest first, lost ones included.
func (c Case) ours() []v1alpha1.Change {
	return slices.DeleteFunc(slices.Clone(c.Status.Changes), func(ch v1alpha1.Change) bool {
		return ch.Kind != v1alpha1.KindFlavor || ch.By != v1alpha1.ByAutopilot
	})
}

func (c Case) cooldown() time.Duration {
	return time.Duration(value(c.Spec.Flavor.CooldownSeconds, 3600)) * time.Second
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func decisionOf(ch v1alpha1.Change) time.Time {
	if ch.DecisionTime != nil {
		return ch.DecisionTime.Time
	}
	return ch.CompletionTime.Time
}

// endOf is the later of decision and completion: a clock may have jumped between.
func endOf(ch v1alpha1.Change) time.Time {
	if d := decisionOf(ch); d.After(ch.CompletionTime.Time) {
		return d
	}
	return ch.CompletionTime.Time
}

// noEffect reports whether the last two changes for this metric did not help it: each time it was in force again at
// nearly the value of before. That it cleared in between counts for nothing.
func (c Case) noEffect(a Alarm, ours []v1alpha1.Change) (d Decision, held bool) {
	valueNow := a.Evidence.Percent
	vain := 0
	for _, ch := range ours {
		if ch.Outcome != v1alpha1.OutcomeCompleted || len(ch.Metrics) == 0 || ch.Metrics[0] != a.Metric {
			continue
		}
		before, err := strconv.ParseFloat(ch.ValuePercent, 64)
		left := effectSpan - c.Now.Sub(ch.CompletionTime.Time)
		if err != nil || left <= 0 || ch.Generation != c.Generation || valueNow < before-effectPoints {
			return d, false
		}
		if vain++; vain == 2 {
			d = c.about(a)
			d.From = c.Instance.Flavor
			return d.no(ReasonNoEffect, left, "Two larger flavors in a row did not bring %s down, which is at %.1f %% again: a third is no cure, unless the spec changes", spoken(a.Metric), a.Evidence.Percent), true
		}
		valueNow = before
	}
	return d, false
}

// contested reports whether somebody put a smaller flavor in place of ours.
func (c Case) contested(d Decision, ours []v1alpha1.Change) Decision {
	last := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionContested)
	on := last != nil && last.Status == "True" && last.Reason == string(ReasonContested) &&
		last.ObservedGeneration == c.Generation && c.Now.Sub(last.LastTransitionTime.Time) < contestKept
	if len(ours) == 0 || !c.smaller(c.Wanted.Flavor, ours[0]) {
		return Decision{}
	}
	if !on && (ours[0].Generation != c.Generation || !c.freshly(ours[0])) {
		return Decision{}
	}
	left := contestKept
	if on {
		left -= c.Now.Sub(last.LastTransitionTime.Time)
	}
	who := c.Rival
	if who == "" {
		who = "Somebody"
	}
	return d.no(ReasonContested, left, "%s put %s in place of %s: the flavor is not changed for 7 days, unless the spec changes", who, c.Wanted.Flavor, ours[0].To)
}

// freshly reports whether a smaller flavor came within a day of a change of ours: we are still within that day, or saw it
// come then.
func (c Case) freshly(ours v1alpha1.Change) bool {
	until := decisionOf(ours).Add(contestSpan)
	return c.Now.Before(until) || slices.ContainsFunc(c.Status.Changes, func(ch v1alpha1.Change) bool {
		return ch.Kind == v1alpha1.KindFlavor && ch.By == v1alpha1.ByOther && ch.CompletionTime.After(decisionOf(ours)) &&
			ch.CompletionTime.Time.Before(until) && c.Now.Sub(ch.CompletionTime.Time) < contestKept && c.smaller(ch.To, ours)
	})
}

// Interfered reports whether the Rds asks for less than our last change did: then it is worth knowing who wrote that.
func (c Case) Interfered() bool {
	ours := c.ours()
	return len(ours) > 0 && c.smaller(c.Wanted.Flavor, ours[0])
}

// smaller reports whether a flavor is smaller than the one a change of ours asked for.
func (c Case) smaller(code string, ours v1alpha1.Change) bool {
	is, known := flavors.Find(c.Catalogue, code)
	was, knownToo := flavors.Find(c.Catalogue, ours.To)
	if known && knownToo {
		return is.VCPUs < was.VCPUs || is.MemoryGB < was.MemoryGB
	}
	return code == ours.From
}

// rolledBack reports whether the cloud left our flavor although the Rds still asks for it.
func (c Case) rolledBack() (left time.Duration, ok bool) {
	for _, ch := range c.ours() {
		if ch.Outcome == v1alpha1.OutcomeCompleted && ch.To == c.Wanted.Flavor {
			left = contestSpan - c.Now.Sub(ch.CompletionTime.Time)
			return left, left > 0
		}
	}
	return 0, false
}
