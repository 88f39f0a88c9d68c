// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
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
)

// checkRolledBack waits for a day after the cloud reverted our flavor although the Rds requested it, even if ours is
// back by now. An operator that applies old requests again moves back and forth between flavors.
func checkRolledBack(w *walk, _ *proposal) answer {
	ours, remaining := w.c.RolledBack()
	if remaining <= 0 {
		return answer{}
	}
	return no(autopilot.ReasonRolledBack, remaining,
		"The cloud reverted flavor %s at %s, although the Rds requests it. The flavor stays for 24 hours", ours.To,
		autopilot.TimeText(ours.EndTime.Time))
}

// checkCooldown counts the starts of our changes, whatever became of them, because each may have restarted the
// database.
func checkCooldown(w *walk, _ *proposal) answer {
	c := w.c
	starts := change.FlavorStarts(c.Status.Changes)
	if len(starts) > 0 {
		if remaining := autopilot.Cooldown(c.Spec) - c.Now.Sub(starts[0]); remaining > 0 {
			return no(autopilot.ReasonCooldown, remaining, "The last change of flavor started at %s, and the cooldown is %s",
				autopilot.TimeText(starts[0]), autopilot.DurationText(autopilot.Cooldown(c.Spec)))
		}
	}
	if most := int(c.Spec.Flavor.MaxChangesPerDay); most > 0 && len(starts) >= most {
		if remaining := change.DaySpan - c.Now.Sub(starts[most-1]); remaining > 0 {
			return no(autopilot.ReasonBudgetSpent, remaining,
				"The flavor changed %s in 24 hours, as often as spec.flavor.maxChangesPerDay allows", autopilot.TimesText(most))
		}
	}
	return answer{}
}

// checkEffect stops an alarm if the last two changes for its metric did not help. It does not matter that the alarm
// cleared between them.
func checkEffect(w *walk, ch *proposal) answer {
	a := ch.alarms[0]
	remaining := w.c.UntilEffective(a)
	if remaining <= 0 {
		return answer{}
	}
	return no(autopilot.ReasonNoEffect, remaining,
		"The last two larger flavors did not reduce %s, which is at %.1f %% again. The autopilot tries no third one unless the spec changes",
		autopilot.Row(a.Metric).Label, a.Evidence.Percent)
}

// checkContested waits after another writer has reverted our change: a size before the cloud made it for minutes, a
// flavor for a week.
func checkContested(w *walk, ch *proposal) answer {
	c := w.c
	if ch.kind == volume {
		n, last := c.ResetSize()
		remaining := c.ResetSizeWait(n, ch.alarms[0].Evidence) - c.Now.Sub(last.EndTime.Time)
		if n == 0 || remaining <= 0 {
			return answer{}
		}
		w.needWriter(ch)
		return no(autopilot.ReasonContested, remaining, "%s. Retrying at longer intervals", c.ResetText(last))
	}
	at, ours, ok := c.Contest()
	if !ok {
		return answer{}
	}
	w.needWriter(ch)
	return no(autopilot.ReasonContested, change.WeekSpan-c.Now.Sub(at), "%s", c.ContestText(ours))
}

// checkRefusal waits for the next attempt after the API server or the cloud has refused the change, or has failed to
// make it.
func checkRefusal(w *walk, ch *proposal) answer {
	c := w.c
	last, failures := change.Backoff(c.Status.Changes, ch.kind, c.Now)
	if failures == 0 {
		return answer{}
	}
	if remaining := last.Refusal.NextTime.Sub(c.Now); remaining > 0 {
		return no(autopilot.RefusalReason(*last.Refusal), remaining, "%s", autopilot.DescribeRefused(last))
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
