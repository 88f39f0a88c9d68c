// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// gate checks the first three guards of docs/decisions.md, which are the same for every metric. It reports whether the
// alarm passes them. If not, a decision without a reason must not be recorded.
func (c Case) gate(a Alarm) (Decision, bool) {
	d := c.newDecision(a)
	metric, err := LookupMetric(a.Metric)
	switch {
	case err != nil && !a.InForce(c.Now):
		return Decision{}, false
	case err != nil:
		return d.decline(ReasonPolicyInvalid, 0, "This version ignores the alarm: %v", err), false
	}
	if !a.InForce(c.Now) && !a.isOverdue(c) && !c.isEarly(a) && (!a.persistsAfterGrowth() || !c.IsFull(a.Evidence)) {
		switch {
		case !a.GrowthTime.IsZero() && !a.Evidence.Time.After(a.GrowthTime):
			return Decision{RequeueAfter: dataRequeue}, false // Cloud Eye has no measurement from after the growth yet
		case !a.signalled() || c.isAnswered(a):
			return Decision{RequeueAfter: a.overdueRequeue(c)}, false
		case a.settling(c.Now):
			return Decision{RequeueAfter: settleRequeue}, false
		case a.State == "":
			return d.decline(ReasonNoData, dataRequeue, "Cloud Eye does not report whether the %s alarm of %s is still in force",
				metric.Label, at(a.since())), false
		}
		return d.decline(ReasonAlarmCleared, a.overdueRequeue(c),
			"The %s alarm of %s (%s %%) had ended before the check: Cloud Eye reports %s", metric.Label, at(a.since()),
			a.Signal.ValuePercent, a.State), false
	}
	if err := Validate(c.Spec, metric.HelpedBy); err != nil {
		return d.decline(ReasonPolicyInvalid, 0, "The policy is invalid, so the autopilot ignores the %s alarm: %v",
			metric.Label, err), false
	}
	switch {
	case c.Mode == v1alpha1.ModeOff:
		return d.decline(ReasonNotEnabled, 0, "Autopilot is off for this database: the mode is Off"), false
	case !c.Enabled:
		return d.decline(ReasonNotEnabled, 0, "Autopilot is off for this database: spec.autopilot of the Rds was set to false, or the Rds or RdsAutopilot is being deleted"), false
	case !metric.Enabled(c.Spec):
		return d.decline(ReasonNotEnabled, 0, "The %s alarm is switched off: spec.flavor.%s.enabled is false", metric.Label,
			a.Metric), false
	case c.NotAllowed != "":
		return d.decline(ReasonNotAllowed, 0, "%s", c.NotAllowed), false
	case c.ClaimedBy != "":
		return d.decline(ReasonInstanceUnknown, c.Recheck, "%s", DescribeClaim(c.ClaimedBy)), false
	case c.Instance == nil && c.NoRds:
		return d.decline(ReasonInstanceUnknown, c.Recheck, "The cloud has no instance with the id in spec.instanceID"), false
	case c.Instance == nil:
		return d.decline(ReasonInstanceUnknown, c.Recheck, "The cloud has no instance with the id in status.id of the Rds"),
			false
	case !a.Evidence.Present():
		return d.decline(ReasonNoData, dataRequeue, "The %s alarm is in force, but Cloud Eye has no measurement to decide on",
			metric.Label), false
	case c.Now.Sub(a.Evidence.Time) > evidenceAge+metric.measuredOver(c.Spec):
		return d.decline(ReasonStaleEvidence, dataRequeue, "The newest %s value is from %s, which is too old to decide on",
			metric.Label, at(a.Evidence.Time)), false
	}
	return c.checkEvidence(a, metric, d)
}

// IsFull reports whether the used space is at or over the threshold of the present volume.
func (c Case) IsFull(e Evidence) bool {
	return c.Instance != nil && atThreshold(c.Instance.VolumeGB, e.UsedGB, int(c.Spec.Storage.ThresholdPercent))
}

// checkEvidence reports whether the measurement is at or over the threshold and newer than the last change of flavor.
func (c Case) checkEvidence(a Alarm, metric MetricRow, d Decision) (Decision, bool) {
	if metric.InGB() {
		if at := metric.EffectiveThreshold(c.Spec, c.Instance.VolumeGB); !c.IsFull(a.Evidence) && !c.isEarly(a) {
			return d.decline(ReasonBelowThreshold, dataRequeue, "Storage stays at %d GB: %s %% used, alarm at %d %%",
				c.Instance.VolumeGB, d.value(), at), false
		}
		return d, true
	}
	if last, ok := lastChanged(c.Status.Changes, v1alpha1.KindFlavor); ok && !a.Evidence.Time.After(last) {
		return Decision{RequeueAfter: dataRequeue}, false // Cloud Eye has no measurement from after the change yet
	}
	if a.Evidence.Percent < float64(metric.ConfiguredThreshold(c.Spec)) {
		return d.decline(ReasonBelowThreshold, dataRequeue, "The flavor stays %s: %s", c.Instance.Flavor,
			c.usage([]Alarm{a})), false
	}
	return d, true
}

// isAnswered reports whether the alarm of this very signal was already recorded as cleared.
func (c Case) isAnswered(a Alarm) bool {
	for _, r := range c.Status.Decisions {
		if r.Metric == a.Metric {
			return r.MessageID == a.Signal.MessageID && r.Reason == string(ReasonAlarmCleared)
		}
	}
	return false
}

// newDecision returns a decision on an alarm without a reason. Its storage percentage refers to the present size of the
// volume.
func (c Case) newDecision(a Alarm) Decision {
	d := Decision{
		Time: c.Now, Metric: a.Metric, Action: ActionNone, Evidence: a.Evidence, MessageID: a.messageID(), Since: a.since(),
	}
	if !a.InForce(c.Now) && c.isEarly(a) {
		d.Since = time.Time{} // no alarm has begun
	}
	if metricRow(a.Metric).InGB() && c.Instance != nil && c.Instance.VolumeGB > 0 && a.Evidence.Present() {
		d.Evidence.Percent = 100 * a.Evidence.UsedGB / float64(c.Instance.VolumeGB)
	}
	return d
}
