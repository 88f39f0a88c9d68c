// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// checkInForce lets an alarm pass that needs an answer. It reads the used space of a database whose alarm is not in
// force only if that may stand in for the alarm: in a sweep, after a growth, over the threshold, and while the database
// is read-only or a growth has not started.
func checkInForce(w *walk, ch *proposal) answer {
	if !ch.alarms[0].DeferredTime.IsZero() { // its window is open
		return answer{}
	}
	w.need(ch, alarmState)
	metric := autopilot.Row(ch.alarms[0].Metric)
	if metric.InGB() && w.c.UsedSpaceDue(ch.alarms[0]) {
		w.need(ch, usedSpace)
	}
	c, a := *w.c, ch.alarms[0]
	grown := c.GrowthTime(a)
	isMeasuredSince := !grown.IsZero() && a.Evidence.Time.After(grown) // the state of the rewritten rule does not count
	switch {
	case a.InForce(c.Now), c.IsReadOnly(a):
		return answer{}
	case a.IsOverdue(c), isMeasuredSince && c.IsFull(a.Evidence):
		return answer{}
	case metric.Label == string(a.Metric) && metric.HelpedBy == "": // of another version, and not in force
		return silence(0)
	case !grown.IsZero() && !isMeasuredSince:
		return silence(autopilot.DataRequeue)
	case !a.Signalled() || isAnswered(c.Status.Decisions, a):
		return silence(a.OverdueRequeue(c))
	case a.Settling(c.Now):
		return silence(autopilot.SettleRequeue)
	case a.State == "":
		return no(autopilot.ReasonNoData, autopilot.DataRequeue,
			"Cloud Eye does not report whether the %s alarm of %s is still in force", metric.Label,
			autopilot.TimeText(a.Since(c)))
	}
	return no(autopilot.ReasonAlarmCleared, a.OverdueRequeue(c),
		"The %s alarm of %s (%s %%) had ended before the check: Cloud Eye reports %s", metric.Label,
		autopilot.TimeText(a.Since(c)), a.Signal.ValuePercent, a.State)
}

// isAnswered reports whether the alarm of this very signal was already recorded as cleared.
func isAnswered(decisions []v1alpha1.DecisionRecord, a autopilot.Alarm) bool {
	for _, r := range decisions {
		if r.Metric == a.Metric {
			return r.MessageID == a.Signal.MessageID && r.Reason == string(autopilot.ReasonAlarmCleared)
		}
	}
	return false
}

// checkEvidence demands a measurement that is recent, at or over the threshold and, for a flavor, newer than the last
// change.
func checkEvidence(w *walk, ch *proposal) answer {
	metric := autopilot.Row(ch.alarms[0].Metric)
	switch {
	case !ch.alarms[0].DeferredTime.IsZero(): // the status has the measurement
		return answer{}
	case metric.InGB():
		w.need(ch, usedSpace)
	default:
		w.need(ch, usage)
	}
	c, a := *w.c, ch.alarms[0]
	switch {
	case !a.Evidence.Present():
		return no(autopilot.ReasonNoData, autopilot.DataRequeue,
			"The %s alarm is in force, but there is no measurement to decide on: %s", metric.Label,
			cmp.Or(a.Evidence.Missing, "none was read"))
	case c.Now.Sub(a.Evidence.Time) > autopilot.EvidenceAge+metric.MeasuredOver(c.Spec):
		return no(autopilot.ReasonStaleEvidence, autopilot.DataRequeue,
			"The newest %s value is from %s, which is too old to decide on", metric.Label,
			autopilot.TimeText(a.Evidence.Time))
	case metric.InGB():
		if c.NewSize(a, math.MaxInt) > c.Instance.VolumeGB {
			return answer{}
		}
		return no(autopilot.ReasonBelowThreshold, autopilot.DataRequeue, "Storage stays at %d GB: %s %% used, alarm at %d %%",
			c.Instance.VolumeGB, newDecision(c, a).ValueText(), metric.EffectiveThreshold(c.Spec, c.Instance.VolumeGB))
	}
	if last, ok := change.LastChanged(c.Status.Changes, flavor); ok && !a.Evidence.Time.After(last) {
		return silence(autopilot.DataRequeue) // Cloud Eye has no measurement from after the change yet
	}
	if a.Evidence.Percent < float64(metric.ConfiguredThreshold(c.Spec)) {
		return no(autopilot.ReasonBelowThreshold, autopilot.DataRequeue, "The flavor stays %s: %s", c.Instance.Flavor,
			usageText(c.Spec, ch.alarms))
	}
	return answer{}
}

func usageText(spec v1alpha1.Spec, alarms []autopilot.Alarm) string {
	var parts []string
	for _, a := range alarms {
		metric := autopilot.Row(a.Metric)
		if !a.DeferredTime.IsZero() {
			parts = append(parts, fmt.Sprintf("%s was in alarm at %s, and the window is open", metric.Label,
				autopilot.TimeText(a.DeferredTime)))
			continue
		}
		parts = append(parts, fmt.Sprintf("%.1f %% %s used, alarm at %d %%", a.Evidence.Percent, metric.Label,
			metric.ConfiguredThreshold(spec)))
	}
	return strings.Join(parts, "; ")
}
