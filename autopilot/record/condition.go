// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// dataMissing is how long a rule may have no data before the condition Armed becomes False. Cloud Eye has short gaps of
// its own.
const dataMissing = 30 * time.Minute

// Armed reports whether an alarm would reach the service now and lead to a decision. It also returns the reason and the
// message of the condition Armed.
func Armed(spec v1alpha1.Spec, a v1alpha1.Alarms, t v1alpha1.Topic, now time.Time) (ok bool, reason, message string) {
	if err := autopilot.Validate(spec); err != nil {
		return false, string(autopilot.ReasonPolicyInvalid), fmt.Sprintf("%v. The flavor does not change; storage still grows", err)
	}
	for _, metric := range autopilot.MetricTable() {
		m := metric.Metric
		if !metric.Enabled(spec) {
			continue
		}
		i := slices.IndexFunc(a.Rules, func(r v1alpha1.Rule) bool { return r.Metric == m && r.AlarmID != "" })
		if i < 0 {
			return false, autopilot.RuleMissing, fmt.Sprintf("Cloud Eye has no alarm rule for %s yet", m)
		}
		r := a.Rules[i]
		if r.State == v1alpha1.StateInsufficientData && r.StateTime != nil && now.Sub(r.StateTime.Time) >= dataMissing {
			return false, string(autopilot.ReasonNoData), fmt.Sprintf("The %s rule %s has had no data since %s", m, r.AlarmID,
				r.StateTime.UTC().Format(time.RFC3339))
		}
	}
	switch {
	case t.State == v1alpha1.SubscriptionConfirmed:
		return true, autopilot.ArmedReason, fmt.Sprintf("%d alarm rules exist and the subscription is confirmed", len(a.Rules))
	case t.State == v1alpha1.SubscriptionRefused:
		return false, autopilot.SubscriptionRefused, t.Message
	case t.Message != "":
		return false, autopilot.SubscriptionPending, t.Message
	}
	return false, autopilot.SubscriptionPending, "The subscription is not confirmed yet. The cloud must reach the public URL, and the service must reach the confirmation link"
}

// SetCondition sets a condition. Its transition time changes only if its status changes.
func SetCondition(s *v1alpha1.Status, kind string, on bool, reason, message string, generation int64, now time.Time) {
	status := metav1.ConditionFalse
	if on {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
		LastTransitionTime: *autopilot.Seconds(now),
	})
}

// SetReady derives the condition Ready from Armed, for tools that do not know this resource. A database is ready if it
// is armed and the last check succeeded, or if its autopilot is off because its user wants that. Before the first
// arming, the default of the schema stays.
func SetReady(s *v1alpha1.Status, checkFailed bool, generation int64, now time.Time) {
	armed := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionArmed)
	switch {
	case armed == nil:
	case armed.Status == metav1.ConditionTrue && checkFailed:
		SetCondition(s, v1alpha1.ConditionReady, false, autopilot.ReadFailed,
			"Armed, but the last check could not read everything. The log of the leader has the error", generation, now)
	default:
		ok := armed.Status == metav1.ConditionTrue || IsSwitchedOff(*s)
		SetCondition(s, v1alpha1.ConditionReady, ok, armed.Reason, armed.Message, generation, now)
	}
}

// LastCheckFailed reports whether the condition Ready has the reason ReadFailed: the last check of an armed database
// failed.
func LastCheckFailed(s v1alpha1.Status) bool {
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == autopilot.ReadFailed
}

// IsSwitchedOff reports whether the condition Armed has the reason NotEnabled: the autopilot is off.
func IsSwitchedOff(s v1alpha1.Status) bool {
	armed := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionArmed)
	return armed != nil && armed.Reason == string(autopilot.ReasonNotEnabled)
}

// setProgressing sets the condition Progressing. It is True while a change of ours is pending. Nothing is in progress in an
// instance that is not in the cloud.
func setProgressing(s *v1alpha1.Status, c autopilot.Case) {
	on, reason, message := false, "NoChangePending", "No change is in progress"
	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.KindFlavor, v1alpha1.KindVolume} {
		if ch, ok := change.Refused(s.Changes, kind); ok && c.Instance != nil && !on {
			reason, message = string(autopilot.RefusalReason(*ch.Refusal)), autopilot.DescribeRefusal(*ch.Refusal)
		}
		if ch, ok := change.Pending(s.Changes, kind); ok && c.Instance != nil {
			on, reason, message = true, string(autopilot.ReasonChangePending), autopilot.DescribeStep(ch)+" is in progress"
		}
	}
	SetCondition(s, v1alpha1.ConditionProgressing, on, reason, message, c.Generation, c.Now)
}

// SetOff sets all conditions of a database whose autopilot is off to False, with this reason. Ready is True if the
// reason is that the user switched it off.
func SetOff(s *v1alpha1.Status, reason, message string, generation int64, now time.Time) {
	for _, kind := range []string{v1alpha1.ConditionArmed, v1alpha1.ConditionProgressing, v1alpha1.ConditionLimited,
		v1alpha1.ConditionContested} {
		SetCondition(s, kind, false, reason, message, generation, now)
	}
	SetReady(s, false, generation, now)
	Summarize(s)
}

// setLimited sets the condition Limited. It is True if storage or flavor is at its cap, or the last step was clamped to
// it. It stays as it is while a change is made or in progress, and while it is not known whether the alarm is in force.
func setLimited(s *v1alpha1.Status, v autopilot.Verdict, generation int64, now time.Time) {
	for _, d := range v.Decisions {
		if d.Capped {
			SetCondition(s, v1alpha1.ConditionLimited, true, string(autopilot.ReasonCapReached), d.Message, generation, now)
			return
		}
	}
	last := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionLimited)
	if last != nil && last.Status == metav1.ConditionTrue && last.ObservedGeneration == generation &&
		slices.ContainsFunc(v.Decisions, func(d autopilot.Decision) bool { return d.Reason.Row().KeepsLimited }) {
		return
	}
	SetCondition(s, v1alpha1.ConditionLimited, false, "WithinCaps", "Within limits", generation, now)
}

// setContested sets the condition Contested. It is True after another writer has reverted our change, until the Rds
// requests our size or flavor or a larger one, the spec changes, or the contest expires.
func setContested(s *v1alpha1.Status, c autopilot.Case, v autopilot.Verdict) {
	if v.Contest != nil {
		SetCondition(s, v1alpha1.ConditionContested, true, string(v.Contest.Reason), v.Contest.Message, c.Generation, c.Now)
		return
	}
	c.Status = *s
	last := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionContested)
	if last != nil && last.Status == metav1.ConditionTrue && last.ObservedGeneration == c.Generation &&
		contestLasts(c, autopilot.Reason(last.Reason)) {
		return
	}
	SetCondition(s, v1alpha1.ConditionContested, false, "Uncontested", "No other writer reverts the autopilot's changes",
		c.Generation, c.Now)
}

// contestLasts reports whether a contest with this reason still holds.
func contestLasts(c autopilot.Case, r autopilot.Reason) bool {
	if _, remaining := c.RolledBack(); r == autopilot.ReasonRolledBack {
		return remaining > 0
	}
	if n, last := c.ResetSize(); n > 0 && c.Wanted.VolumeGB < autopilot.Gigabytes(last.To) {
		return true
	}
	_, _, ok := c.Contest()
	return ok
}
