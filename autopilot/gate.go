// SPDX-License-Identifier: Apache-2.0

package autopilot

import "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"

// gate checks what is the same for every metric: the first three guards of docs/decisions.md. It reports whether to go on;
// a decision without a reason is nothing to record.
func (c Case) gate(a Alarm) (Decision, bool) {
	d := c.newDecision(a)
	metric, err := LookupMetric(a.Metric)
	switch {
	case err != nil && !a.InForce(c.Now):
		return Decision{}, false
	case err != nil:
		return d.decline(ReasonPolicyInvalid, 0, "Nothing is done about the alarm: %v", err), false
	}
	if !a.InForce(c.Now) && !a.unheard(c) && (!a.persistsAfterGrowth() || !c.IsFull(a.Evidence)) {
		switch {
		case !a.GrowthTime.IsZero() && !a.Evidence.Time.After(a.GrowthTime):
			return Decision{Again: dataAgain}, false // what the growth came to is not measured yet
		case !a.signalled() || c.isAnswered(a):
			return Decision{}, false
		case a.settling(c.Now):
			return Decision{Again: settleAgain}, false
		case a.State == "":
			return d.decline(ReasonNoData, dataAgain, "Cloud Eye does not say whether the %s alarm of %s lasts", metric.Label, at(a.since())), false
		}
		return d.decline(ReasonAlarmCleared, 0, "The %s alarm of %s (%s %%) was over when it was looked at: Cloud Eye says %s", metric.Label, at(a.since()), a.Signal.ValuePercent, a.State), false
	}
	if err := Validate(c.Spec, metric.HelpedBy); err != nil {
		return d.decline(ReasonPolicyInvalid, 0, "Nothing is done about %s while the policy is wrong: %v", metric.Label, err), false
	}
	switch {
	case c.Mode == v1alpha1.ModeOff:
		return d.decline(ReasonNotEnabled, 0, "Autopilot is off for this database: the mode is Off"), false
	case !c.Enabled:
		return d.decline(ReasonNotEnabled, 0, "Autopilot is off for this database: spec.autopilot of the Rds said false, or one of both is being deleted"), false
	case !metric.Enabled(c.Spec):
		return d.decline(ReasonNotEnabled, 0, "The %s alarm is switched off: spec.flavor.%s.enabled is false", metric.Label, a.Metric), false
	case c.Shared && c.Spec.Apply == v1alpha1.ApplyCloud:
		return d.decline(ReasonInstanceUnknown, c.Recheck, "Another Rds or RdsAutopilot has the same instance id: which of them is to look after it is not known"), false
	case c.Shared:
		return d.decline(ReasonInstanceUnknown, c.Recheck, "Another Rds has the same instance id: which of them to patch is not known"), false
	case c.Instance == nil && c.NoRds:
		return d.decline(ReasonInstanceUnknown, c.Recheck, "The cloud has no instance with the id in spec.instanceID"), false
	case c.Instance == nil:
		return d.decline(ReasonInstanceUnknown, c.Recheck, "The cloud has no instance with the id in status.id of the Rds"), false
	case !a.Evidence.Present():
		return d.decline(ReasonNoData, dataAgain, "The %s alarm is in force, but Cloud Eye has no data: nothing is decided without", metric.Label), false
	case c.Now.Sub(a.Evidence.Time) > evidenceAge+metric.measuredOver(c.Spec):
		return d.decline(ReasonStaleEvidence, dataAgain, "The newest %s value is of %s: too old to decide on", metric.Label, at(a.Evidence.Time)), false
	}
	return c.checkEvidence(a, metric, d)
}

// IsFull reports whether the used space is at or over the threshold of the present size.
func (c Case) IsFull(e Evidence) bool {
	return c.Instance != nil && atThreshold(c.Instance.VolumeGB, e.UsedGB, int(c.Spec.Storage.ThresholdPercent))
}

// checkEvidence checks that the measurement is at or over the threshold, and newer than the last change of flavor.
func (c Case) checkEvidence(a Alarm, metric MetricRow, d Decision) (Decision, bool) {
	if metric.InGB() {
		if at := metric.EffectiveThreshold(c.Spec, c.Instance.VolumeGB); !c.IsFull(a.Evidence) {
			return d.decline(ReasonBelowThreshold, dataAgain, "Storage stays at %d GB: %s %% used, alarm at %d %%", c.Instance.VolumeGB, d.value(), at), false
		}
		return d, true
	}
	if last, ok := lastChanged(c.Status.Changes, v1alpha1.KindFlavor); ok && !a.Evidence.Time.After(last) {
		return Decision{Again: dataAgain}, false // what the change came to is not measured yet
	}
	if a.Evidence.Percent < float64(metric.ConfiguredThreshold(c.Spec)) {
		return d.decline(ReasonBelowThreshold, dataAgain, "The flavor stays %s: %s", c.Instance.Flavor, c.usage([]Alarm{a})), false
	}
	return d, true
}

// isAnswered reports whether this very signal was found to be over already.
func (c Case) isAnswered(a Alarm) bool {
	for _, r := range c.Status.Decisions {
		if r.Metric == a.Metric {
			return r.MessageID == a.Signal.MessageID && r.Reason == string(ReasonAlarmCleared)
		}
	}
	return false
}

// newDecision begins the answer to an alarm. The percentage of a used space is that of the present size.
func (c Case) newDecision(a Alarm) Decision {
	d := Decision{
		Metric: a.Metric, Action: ActionNone, Evidence: a.Evidence, MessageID: a.messageID(), Since: a.since(),
	}
	if metricRow(a.Metric).InGB() && c.Instance != nil && c.Instance.VolumeGB > 0 && a.Evidence.Present() {
		d.Evidence.Percent = 100 * a.Evidence.UsedGB / float64(c.Instance.VolumeGB)
	}
	return d
}
