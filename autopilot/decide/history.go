// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// flavorFirst is how long a pending flavor change delays storage. After that, a full disk is the greater risk.
	flavorFirst = 10 * time.Minute
	// settledFor is the longest time for which an instance must have been ACTIVE before its flavor changes. An operator
	// may still be applying earlier changes.
	settledFor = 15 * time.Minute
	// soldOutRequeue is when unavailable flavors are checked again: as soon as the cached catalogue has expired.
	soldOutRequeue = 5 * time.Minute
	// fleetRequeue is when a flavor that waits for --max-flavor-changes is checked again.
	fleetRequeue = time.Minute
	// budgetSpan is the time in which spec.flavor.maxChangesPerDay counts changes.
	budgetSpan = 24 * time.Hour
	// effectSpan is how long a change without effect counts. Load may be different after a week.
	effectSpan = 7 * 24 * time.Hour
	// effectPoints is the reduction, in percentage points, below which a change counts as without effect.
	effectPoints = 5
)

// checkRolledBack waits for a day after the cloud reverted our flavor although the Rds requested it, even if ours is
// back by now. An operator that applies old requests again moves back and forth between flavors.
func checkRolledBack(w *walk, _ *change) answer {
	ch, remaining := w.c.RolledBack()
	if remaining <= 0 {
		return answer{}
	}
	return no(autopilot.ReasonRolledBack, remaining,
		"The cloud reverted the flavor from %s to %s at %s, although the Rds requested the former. The flavor stays for 24 hours",
		ch.From, ch.To, autopilot.TimeText(ch.CompletionTime.Time))
}

// checkCooldown counts our changes, lost ones included, because each may have restarted the database.
func checkCooldown(w *walk, _ *change) answer {
	c := w.c
	ours := c.OurFlavorChanges()
	if len(ours) > 0 {
		ended := ours[0].CompletionTime.Time
		if remaining := c.Cooldown() - c.Now.Sub(ended); remaining > 0 {
			return no(autopilot.ReasonCooldown, remaining, "The flavor changed at %s, and the cooldown is %s",
				autopilot.TimeText(ended), autopilot.DurationText(c.Cooldown()))
		}
	}
	if most := int(c.Spec.Flavor.MaxChangesPerDay); most > 0 && len(ours) >= most {
		if remaining := budgetSpan - c.Now.Sub(autopilot.StartTime(ours[most-1])); remaining > 0 {
			return no(autopilot.ReasonBudgetSpent, remaining,
				"The flavor changed %s in 24 hours, as often as spec.flavor.maxChangesPerDay allows", autopilot.TimesText(most))
		}
	}
	return answer{}
}

// checkEffect stops if the last two changes for the metric did not help: each time the alarm was in force again within
// 7 days, at nearly the former value. It does not matter that the alarm cleared between them.
func checkEffect(w *walk, ch *change) answer {
	for _, a := range ch.alarms {
		remaining := untilEffective(*w.c, a)
		if remaining <= 0 {
			continue
		}
		return no(autopilot.ReasonNoEffect, remaining,
			"The last two larger flavors did not reduce %s, which is at %.1f %% again. The autopilot tries no third one unless the spec changes",
			autopilot.Row(a.Metric).Label, a.Evidence.Percent)
	}
	return answer{}
}

// untilEffective returns how long the last two changes for the metric of an alarm still count as ineffective; 0 if one
// of them helped, or if there are fewer.
func untilEffective(c autopilot.Case, a autopilot.Alarm) time.Duration {
	valueNow, ineffective := a.Evidence.Percent, 0
	for _, ch := range c.OurFlavorChanges() {
		if ch.Outcome != v1alpha1.OutcomeCompleted || len(ch.Metrics) == 0 || ch.Metrics[0] != a.Metric {
			continue
		}
		before, err := strconv.ParseFloat(ch.ValuePercent, 64)
		remaining := effectSpan - c.Now.Sub(ch.CompletionTime.Time)
		if err != nil || remaining <= 0 || ch.Generation != c.Generation || valueNow < before-effectPoints {
			return 0
		}
		if ineffective++; ineffective == 2 {
			return remaining
		}
		valueNow = before
	}
	return 0
}

// checkContested waits after another writer has reverted our change: a size before the cloud made it for minutes, a
// flavor for a week.
func checkContested(w *walk, ch *change) answer {
	c := w.c
	if ch.kind == volume {
		lost, ok := c.RevertedSize()
		if !ok {
			return answer{}
		}
		remaining := c.RevertedSizeWait(lost, ch.alarms[0].Evidence) - c.Now.Sub(lost.CompletionTime.Time)
		if remaining <= 0 {
			return answer{}
		}
		w.needWriter(ch)
		return no(autopilot.ReasonContested, remaining, "%s reset the size from %s to %d GB (%s). Retrying at longer intervals",
			autopilot.WriterText(c.SizeWriter), lost.To, c.Wanted.VolumeGB, autopilot.TimesText(int(max(lost.Count, 1))))
	}
	at, ours, ok := c.Contest()
	if !ok {
		return answer{}
	}
	w.needWriter(ch)
	return no(autopilot.ReasonContested, autopilot.ContestKept-c.Now.Sub(at), "%s", c.ContestText(ours))
}

// checkRefusal waits for the next attempt after the API server or the cloud has refused the change.
func checkRefusal(w *walk, ch *change) answer {
	c := w.c
	p := c.UnstartedIntent(ch.kind)
	if p == nil || p.Refusal == nil {
		return answer{}
	}
	if remaining := autopilot.UntilRetry(*p.Refusal, c.Now); remaining > 0 {
		return no(autopilot.RefusalReason(*p.Refusal), remaining, "%s", autopilot.DescribeRefusedIntent(*p))
	}
	return answer{}
}

// refusalReasons returns the reasons with which a change may be refused.
func refusalReasons() []autopilot.Reason {
	return []autopilot.Reason{
		autopilot.ReasonRefused, autopilot.ReasonNotPermitted, autopilot.ReasonPaymentRequired, autopilot.ReasonQuotaExceeded,
		autopilot.ReasonSoldOut, autopilot.ReasonInstanceBusy, autopilot.ReasonStorageFull, autopilot.ReasonStalled,
		autopilot.ReasonJobFailed, autopilot.ReasonCloudRefused, autopilot.CloudUnreachable,
	}
}
