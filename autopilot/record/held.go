// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// heldAfter is how long an alarm may need a change before it counts as held. The cloud usually grows a volume in 5 to
// 15 minutes.
const heldAfter = 15 * time.Minute

// setHeld stores which changes the alarms of a case need and nobody has made, and since when. A change whose alarm
// could not be read stays recorded, because the volume may fill up meanwhile.
func setHeld(c autopilot.Case, s *v1alpha1.Status, decisions []autopilot.Decision) {
	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.KindVolume, v1alpha1.KindFlavor} {
		reason, since, known := neededChange(c, kind, decisions)
		changed, _ := change.LastChanged(s.Changes, kind)
		s.Held = slices.DeleteFunc(slices.Clone(s.Held), func(h v1alpha1.Held) bool {
			isMade := changed.After(h.SinceTime.Time)
			if isMade && changed.Before(since) {
				since = changed
			}
			return h.Kind == kind && (isMade || reason == "" && known)
		})
		if reason != "" {
			hold(s, kind, reason, since)
		}
	}
	if len(s.Held) == 0 {
		s.Held = nil
	}
}

// neededChange returns the reason of the last decision on an alarm that needs a change of that kind, and since when the
// need is known. The reason is empty if no alarm needs one; known is false if that is not certain.
func neededChange(c autopilot.Case, kind v1alpha1.ChangeKind,
	decisions []autopilot.Decision) (reason autopilot.Reason, since time.Time, known bool) {
	since = c.Now
	known = !slices.ContainsFunc(autopilot.MetricTable(), func(m autopilot.MetricRow) bool {
		return m.HelpedBy == kind && m.Enabled(c.Spec)
	})
	unread := false
	for _, a := range c.Alarms {
		if autopilot.HelpedBy(a.Metric) != kind {
			continue
		}
		known = true
		full := autopilot.Row(a.Metric).InGB() && a.Evidence.Present() && c.IsFull(a.Evidence)
		if overdue := c.OverdueSince(a); full && !overdue.IsZero() {
			since = overdue
		}
		last, decided := lastDecision(decisions, a.Metric)
		switch {
		case decided && !endsNeed(last.Reason):
			reason = last.Reason
		case !decided && full: // the rule has not raised its alarm yet
			reason = autopilot.ReasonRuleSilent
		case !decided && (a.State == "" || a.InForce(c.Now) || a.Settling(c.Now)):
			unread = true
		}
	}
	return reason, since, known && !unread
}

// lastDecision returns the last decision on the alarm of a metric. An answer to a request follows its decision.
func lastDecision(decisions []autopilot.Decision, m v1alpha1.Metric) (last autopilot.Decision, ok bool) {
	for _, d := range decisions {
		if d.Metric == m {
			last, ok = d, true
		}
	}
	return last, ok
}

// endsNeed reports whether a decision with this reason means that its alarm needs no change.
func endsNeed(r autopilot.Reason) bool {
	return r == autopilot.ReasonAlarmCleared || r == autopilot.ReasonBelowThreshold || r == autopilot.ReasonNotEnabled
}

// hold records a held change with the reason of now. A change that is held already keeps its time, and while it is in
// progress also the reason that has prevented it.
func hold(s *v1alpha1.Status, kind v1alpha1.ChangeKind, reason autopilot.Reason, since time.Time) {
	s.Held = slices.Clone(s.Held)
	i := slices.IndexFunc(s.Held, func(h v1alpha1.Held) bool { return h.Kind == kind })
	switch {
	case i < 0:
		s.Held = append(s.Held, v1alpha1.Held{Kind: kind, Reason: string(reason), SinceTime: *autopilot.Seconds(since)})
	case !isProgress(reason):
		s.Held[i].Reason = string(reason)
	}
}

// isProgress reports whether a decision with this reason means that the change is being made.
func isProgress(r autopilot.Reason) bool {
	return r == autopilot.ReasonAlarmInForce || r == autopilot.ReasonChangePending
}

// HeldTooLong returns the recorded changes that count as held: those that an alarm has needed for 15 minutes. A change
// that nothing has prevented counts after an hour, because the cloud may take long.
func HeldTooLong(held []v1alpha1.Held, now time.Time) []v1alpha1.Held {
	return slices.DeleteFunc(slices.Clone(held), func(h v1alpha1.Held) bool {
		if isProgress(autopilot.Reason(h.Reason)) {
			return now.Sub(h.SinceTime.Time) < autopilot.JobPatience
		}
		return now.Sub(h.SinceTime.Time) < heldAfter
	})
}

// HeldReasons returns the reasons that a held change may have.
func HeldReasons() []autopilot.Reason {
	reasons := []autopilot.Reason{autopilot.ReasonRuleSilent}
	for _, row := range autopilot.ReasonTable() {
		if row.Source == autopilot.SourceDecision && !endsNeed(row.Reason) {
			reasons = append(reasons, row.Reason)
		}
	}
	return reasons
}
