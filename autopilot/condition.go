// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// dataMissing is how long a rule may be without data before the autopilot counts as disarmed.
const dataMissing = 30 * time.Minute

// Armed reports whether an alarm would reach us now and be acted on, with the reason and the message of the condition.
func Armed(spec v1alpha1.Spec, a v1alpha1.Alarms, now time.Time) (ok bool, reason, message string) {
	if err := Validate(spec, v1alpha1.KindFlavor); err != nil {
		return false, string(ReasonPolicyInvalid), fmt.Sprintf("%v: the flavor is not changed; storage grows all the same", err)
	}
	for _, metric := range MetricTable() {
		m := metric.Metric
		if !metric.Enabled(spec) {
			continue
		}
		i := slices.IndexFunc(a.Rules, func(r v1alpha1.Rule) bool { return r.Metric == m && r.AlarmID != "" })
		if i < 0 {
			return false, RuleMissing, fmt.Sprintf("Cloud Eye has no alarm rule for %s yet", m)
		}
		r := a.Rules[i]
		if r.State == v1alpha1.StateInsufficientData && r.StateTime != nil && now.Sub(r.StateTime.Time) >= dataMissing {
			return false, string(ReasonNoData), fmt.Sprintf("The %s rule %s has had no data since %s", m, r.AlarmID, r.StateTime.UTC().Format(time.RFC3339))
		}
	}
	switch a.Subscription {
	case v1alpha1.SubscriptionConfirmed:
		return true, ArmedReason, fmt.Sprintf("%d alarm rules exist and the subscription is confirmed", len(a.Rules))
	case v1alpha1.SubscriptionPending:
		return false, SubscriptionPending, "The topic's subscription is not confirmed yet: the cloud must reach the public URL, and we its confirmation link"
	}
	return false, SubscriptionPending, "The topic has no subscription of the public URL"
}

// SetCondition sets a condition; its time changes only with its status.
func SetCondition(s *v1alpha1.Status, kind string, on bool, reason, message string, generation int64, now time.Time) {
	status := metav1.ConditionFalse
	if on {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
		LastTransitionTime: *seconds(now),
	})
}

// SetReady sets the condition Ready by what Armed says: it is what tools look at that know nothing of this resource. A database
// is ready when it is armed and the last look at it succeeded, or when its autopilot is off because its user wants that.
// Where nobody has armed it yet, the schema's default stays.
func SetReady(s *v1alpha1.Status, lookFailed bool, generation int64, now time.Time) {
	armed := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionArmed)
	switch {
	case armed == nil:
	case armed.Status == metav1.ConditionTrue && lookFailed:
		SetCondition(s, v1alpha1.ConditionReady, false, LookFailed, "Armed, but not everything could be read at the last look; the log of the leader says what", generation, now)
	default:
		ok := armed.Status == metav1.ConditionTrue || SaysOff(*s)
		SetCondition(s, v1alpha1.ConditionReady, ok, armed.Reason, armed.Message, generation, now)
	}
}

// LookHasFailed reports whether the last look at an armed database failed, by its condition Ready.
func LookHasFailed(s v1alpha1.Status) bool {
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == LookFailed
}

// SaysOff reports whether the condition Armed is that of an autopilot that is off.
func SaysOff(s v1alpha1.Status) bool {
	armed := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionArmed)
	return armed != nil && armed.Reason == string(ReasonNotEnabled)
}

// setProgressing sets the condition Progressing: whether a change of ours is under way: the Rds asks for it and the cloud has not got it yet.
func setProgressing(s *v1alpha1.Status, generation int64, now time.Time) {
	for _, p := range s.Intents() {
		switch {
		case p.Refused() != nil && p.Refusal.Reason != "" && (p.AskedTime == nil || isForGood(p.Refusal)):
			SetCondition(s, v1alpha1.ConditionProgressing, false, p.Refusal.Reason, DescribeRefusal(*p.Refusal), generation, now)
			return
		case p.AskedTime != nil:
			SetCondition(s, v1alpha1.ConditionProgressing, true, string(ReasonChangePending), fmt.Sprintf("%s → %s is under way", p.From, p.To), generation, now)
			return
		case p.Refusal != nil:
			SetCondition(s, v1alpha1.ConditionProgressing, false, string(ReasonRefused), "The Kubernetes API refuses the patch: "+p.Refusal.Message, generation, now)
			return
		}
	}
	SetCondition(s, v1alpha1.ConditionProgressing, false, "NoChangePending", "No change is under way", generation, now)
}

// SetOff sets all conditions of a database whose autopilot is off: nothing is armed, under way, limited or contested, and that is
// as it should be unless the reason says otherwise.
func SetOff(s *v1alpha1.Status, reason, message string, generation int64, now time.Time) {
	for _, kind := range []string{v1alpha1.ConditionArmed, v1alpha1.ConditionProgressing, v1alpha1.ConditionLimited, v1alpha1.ConditionContested} {
		SetCondition(s, kind, false, reason, message, generation, now)
	}
	SetReady(s, false, generation, now)
	Summarize(s)
}

// setLimited sets the condition Limited: whether the policy cuts a wish: storage or flavor are at their cap, or the last step was cut to it. It
// stays while that change is under way, and where there is no way of knowing whether the alarm lasts.
func setLimited(s *v1alpha1.Status, v Verdict, generation int64, now time.Time) {
	for _, d := range v.Decisions {
		if d.Cut {
			SetCondition(s, v1alpha1.ConditionLimited, true, string(ReasonCapReached), d.Message, generation, now)
			return
		}
	}
	last := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionLimited)
	if last != nil && last.Status == metav1.ConditionTrue && last.ObservedGeneration == generation && slices.ContainsFunc(v.Decisions, func(d Decision) bool { return d.Reason.row().KeepsLimited }) {
		return
	}
	SetCondition(s, v1alpha1.ConditionLimited, false, "WithinCaps", "No wish is cut by the policy", generation, now)
}

// setContested sets the condition Contested: whether somebody undoes what we did. It stays until what the Rds asks for is ours or larger, the spec
// is new, or its time is over.
func setContested(s *v1alpha1.Status, c Case, v Verdict) {
	if v.Contest != nil {
		SetCondition(s, v1alpha1.ConditionContested, true, string(v.Contest.Reason), v.Contest.Message, c.Generation, c.Now)
		return
	}
	c.Status = *s
	last := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionContested)
	if last != nil && last.Status == metav1.ConditionTrue && last.ObservedGeneration == c.Generation && c.contestLasts(Reason(last.Reason)) {
		return
	}
	SetCondition(s, v1alpha1.ConditionContested, false, "Uncontested", "Nobody undoes what the autopilot did", c.Generation, c.Now)
}

func (c Case) contestLasts(r Reason) bool {
	if r == ReasonRolledBack {
		_, ok := c.checkRolledBack(Decision{})
		return ok
	}
	if lost, ok := c.sizeTakenBack(); ok && c.Wanted.VolumeGB < gigabytes(lost.To) {
		return true
	}
	_, _, ok := c.contest()
	return ok
}
