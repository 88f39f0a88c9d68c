// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// decideStorage decides on a full volume. It checks the guards of docs/decisions.md from pending changes on.
func (c Case) decideStorage(a Alarm) Decision {
	d, inst, s := c.newDecision(a), c.Instance, c.Spec.Storage
	d.From = strconv.Itoa(inst.VolumeGB)
	if held, ok := c.checkPending(d, v1alpha1.KindVolume); ok {
		return held
	}
	used := a.Evidence.UsedGB
	most, isCause := c.growthLimit(a.Evidence)
	rule := growth{stepGB: int(s.StepGB), maxGB: most, thresholdPercent: int(s.ThresholdPercent), early: c.isEarly(a)}
	slow := rule.newSize(inst.VolumeGB, used)
	rule.aheadGB = c.aheadGB(a.Evidence)
	to := rule.newSize(inst.VolumeGB, used)
	decided := to
	if c.Wanted.VolumeGB > inst.VolumeGB { // the Rds requests a size; request no smaller one
		to = min(max(to, roundUp(c.Wanted.VolumeGB)), c.maxGB())
		if held, ok := c.checkUnfulfilledSize(d, a, to); ok {
			return held
		}
	}
	if inst.Status != StatusActive && inst.Status != StatusStorageFull {
		return d.decline(ReasonInstanceBusy, c.Recheck, "The instance is in %s: storage grows once it is %s", inst.Status,
			StatusActive)
	}
	if inst.VolumeGB >= c.maxGB() {
		d.Capped = true
		return d.decline(ReasonCapReached, 0, "Storage stays at %d GB: %s %% used, but %s", inst.VolumeGB, d.value(),
			c.maxGBText())
	}
	if isCause && inst.VolumeGB >= most {
		d.Capped = true
		return d.decline(ReasonCauseNotData, dataRequeue,
			"Storage stays at %d GB: %s %% used, and spec.storage.causeMaxGB is %d. %s", inst.VolumeGB, d.value(), most,
			c.Status.Cause.Message)
	}
	if held, ok := c.checkContestedSize(d); ok {
		return held
	}
	d.Action, d.Reason, d.To = ActionGrowVolume, ReasonAlarmInForce, strconv.Itoa(to)
	d.Message = fmt.Sprintf("Storage %d → %d GB: %s %% used, alarm at %d %%", inst.VolumeGB, to, d.value(),
		Threshold(inst.VolumeGB, int(s.ThresholdPercent)))
	if rule.early {
		c.Mode = c.growsEarly()
		d.Message += fmt.Sprintf(", filling at %.0f GB/h. At this rate the database is read-only before %s, and the alarm would come too late",
			a.Evidence.Filling.Fast, at(a.Evidence.Time.Add(earlyReach)))
	} else if decided > slow {
		d.Message += fmt.Sprintf(", filling at %.0f GB/h", a.Evidence.Filling.Fast)
	}
	if to > decided {
		d.Message += fmt.Sprintf("; the Rds requests %d GB", c.Wanted.VolumeGB)
	}
	if inst.Status == StatusStorageFull {
		d.Message += "; the instance is in " + StatusStorageFull + " (read-only), and the cloud may refuse the growth"
	} else if readOnly(inst.VolumeGB, used) {
		d.Message += "; the database is read-only until it has grown"
	}
	rule.maxGB = math.MaxInt
	if needed := rule.newSize(inst.VolumeGB, used); needed > to {
		d.Capped = true
		field := "maxGB"
		if isCause {
			field = "causeMaxGB"
		}
		d.Message += fmt.Sprintf("; %d GB are needed, clamped to spec.storage.%s", needed, field)
	}
	return c.checkMode(d)
}

// aheadGB returns how much the used space grows at the fast rate of the last hour in spec.storage.aheadMinutes. It is 0
// if the rate is not known.
func (c Case) aheadGB(e Evidence) float64 {
	return max(0, e.Filling.Fast) * float64(valueOr(c.Spec.Storage.AheadMinutes, 60)) / 60
}

// checkUnfulfilledSize prevents growth while the cloud has not made the size that another writer requested in the Rds.
// If that request has stalled and the database is about to become read-only, a larger size of ours is requested. With
// apply: Cloud nothing waits: the autopilot itself requests the size of the Rds.
func (c Case) checkUnfulfilledSize(d Decision, a Alarm, to int) (Decision, bool) {
	if c.Spec.Apply == v1alpha1.ApplyCloud {
		return d, false
	}
	since, stalled := c.stalledRequest(v1alpha1.KindVolume)
	switch {
	case !stalled:
		return d.decline(ReasonChangePending, c.Recheck,
			"The Rds requests %d GB and the cloud still has %d GB. That change comes first", c.Wanted.VolumeGB,
			c.Instance.VolumeGB), true
	case to > c.Wanted.VolumeGB && nearlyReadOnly(c.Instance.VolumeGB, a.Evidence.UsedGB):
		return d, false
	}
	return d.decline(ReasonStalled, c.Recheck,
		"The Rds has requested %d GB since %s and the cloud still has %d GB, although the instance is %s. Check the operator, or correct spec.volumesize", c.Wanted.VolumeGB, at(since), c.Instance.VolumeGB, c.Instance.Status), true
}

// revertedSizeWait returns how long to wait before a reverted size is requested again: after the first, the second and
// every later time. A database that is read-only, or nearly so, cannot wait for minutes.
func (c Case) revertedSizeWait(d Decision, lost v1alpha1.Change) time.Duration {
	waits := [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}
	if nearlyReadOnly(c.Instance.VolumeGB, d.Evidence.UsedGB) {
		waits = [...]time.Duration{10 * time.Second, 30 * time.Second, time.Minute}
	}
	return waits[min(max(lost.Count, 1), int32(len(waits)))-1]
}

// checkContestedSize delays storage after another writer has reverted our size before the cloud made it.
func (c Case) checkContestedSize(d Decision) (Decision, bool) {
	lost, ok := c.revertedSize()
	if !ok {
		return d, false
	}
	remaining := c.revertedSizeWait(d, lost) - c.Now.Sub(lost.CompletionTime.Time)
	if remaining <= 0 {
		return d, false
	}
	return d.decline(ReasonContested, remaining, "%s reset the size from %s to %d GB (%s). Retrying at longer intervals",
		c.otherWriter(), lost.To, c.Wanted.VolumeGB, timesText(int(max(lost.Count, 1)))), true
}

// revertedSize returns our last growth if the Rds stopped requesting it before the cloud made it, and neither the size
// nor the spec has changed since.
func (c Case) revertedSize() (v1alpha1.Change, bool) {
	if c.Instance == nil {
		return v1alpha1.Change{}, false
	}
	for _, ch := range c.Status.Changes {
		if ch.Kind == v1alpha1.KindVolume {
			return ch, ch.By == v1alpha1.ByAutopilot && ch.Outcome == v1alpha1.OutcomeLost && ch.Generation == c.Generation &&
				ch.From == strconv.Itoa(c.Instance.VolumeGB) && c.Now.Sub(ch.CompletionTime.Time) < contestSpan
		}
	}
	return v1alpha1.Change{}, false
}

// otherWriter names the writer that reverted our change, for the beginning of a sentence.
func (c Case) otherWriter() string {
	if c.OtherWriter == "" {
		return "Another writer"
	}
	return fmt.Sprintf("Field manager %q", c.OtherWriter)
}

// checkMode applies the last guards: mode Recommend records the action and patches nothing, and a refused change waits
// for its next attempt.
func (c Case) checkMode(d Decision) Decision {
	if c.Mode == v1alpha1.ModeRecommend {
		d.Reason = ReasonRecommend
		d.Message += " (recommended only)"
		return d
	}
	p := c.unstarted(helpedBy(d.Metric))
	if p == nil || p.Refusal == nil {
		return d
	}
	if remaining := c.untilRetry(*p.Refusal); remaining > 0 {
		return d.declineRefused(*p.Refusal, remaining)
	}
	return d
}

// untilRetry returns how long to wait before a refused change is requested again.
func (c Case) untilRetry(r v1alpha1.Refusal) time.Duration {
	if r.NextTime != nil {
		return r.NextTime.Sub(c.Now)
	}
	return refusalWait(r.Count) - c.Now.Sub(r.Time.Time)
}

// declineRefused returns the decision that the API server or the cloud refuses the change.
func (d Decision) declineRefused(r v1alpha1.Refusal, remaining time.Duration) Decision {
	change := describeStep(helpedBy(d.Metric), d.From, d.To)
	d.To = ""
	return d.decline(cmp.Or(Reason(r.Reason), ReasonRefused), remaining, "%s (%s): %s", refusalText(r), change, r.Message)
}

// refusalWait returns how long to wait after so many refusals: 1, 2, 4 … up to 15 minutes.
func refusalWait(count int32) time.Duration {
	return min(time.Minute<<min(max(count-1, 0), 4), longestWait)
}

// checkPending prevents a change of that kind while a change of ours is in progress.
func (c Case) checkPending(d Decision, kind v1alpha1.ChangeKind) (Decision, bool) {
	for _, p := range c.Status.Intents() {
		if c.intentState(p) != waiting {
			continue
		}
		age := c.Now.Sub(startedAt(*p))
		if kind == v1alpha1.KindVolume && p.Kind == v1alpha1.KindFlavor && age >= flavorFirst {
			continue // a flavor that the operator cannot change must not let the disk run full
		}
		switch {
		case c.Instance.Status == StatusStorageFull && p.Kind == v1alpha1.KindVolume:
			return d.decline(ReasonStorageFull, c.Recheck,
				"The instance is in %s. %s was requested, and the cloud may refuse it", StatusStorageFull, describeIntent(*p)), true
		case p.JobID != "" && p.JobTime != nil && c.Now.Sub(p.JobTime.Time) >= jobPatience:
			return d.decline(ReasonStalled, c.Recheck,
				"%s has been in progress since %s, and the cloud's job %s has not ended. Contact the cloud's support",
				describeIntent(*p), at(p.JobTime.Time), p.JobID), true
		case IsStalled(*p, c.Instance.observed(c.Status.Instance, c.Now), c.Now):
			advice := "Check the operator"
			if p.JobTime != nil {
				advice = "The cloud has not reported the end of its job"
			}
			return d.decline(ReasonStalled, c.Recheck, "%s was requested at %s and is not done, although the instance is %s. %s",
				describeIntent(*p), at(c.Now.Add(-age)), StatusActive, advice), true
		}
		return d.decline(ReasonChangePending, c.Recheck, "%s is in progress", describeIntent(*p)), true
	}
	return d, false
}

// unstarted returns the recorded intent of that kind that has not started, or nil.
func (c Case) unstarted(kind v1alpha1.ChangeKind) *v1alpha1.Intent {
	for _, p := range c.Status.Intents() {
		if p.Kind == kind && c.intentState(p) == unstarted {
			return p
		}
	}
	return nil
}

// startedAt returns when the change started. If it has not, it returns when it was decided.
func startedAt(i v1alpha1.Intent) time.Time {
	if at := Started(i, v1alpha1.ApplyOperator); at != nil {
		return at.Time
	}
	return i.DecisionTime.Time
}

// IsStalled reports whether an intent should be completed by now.
func IsStalled(i v1alpha1.Intent, inst *v1alpha1.Instance, now time.Time) bool {
	return Overdue(startedAt(i), inst, now)
}

// Overdue reports whether a change that was requested at that time should be completed by now.
func Overdue(since time.Time, inst *v1alpha1.Instance, now time.Time) bool {
	at := StallsAt(since, inst)
	return !at.IsZero() && !now.Before(at)
}

// StallsAt returns when a change that started at that time is overdue: 15 minutes after the later of its start and the
// instance becoming ACTIVE. It returns zero if the instance is not ACTIVE.
func StallsAt(since time.Time, inst *v1alpha1.Instance) time.Time {
	if inst == nil || inst.Status != StatusActive {
		return time.Time{}
	}
	if inst.ActiveSince != nil && inst.ActiveSince.After(since) {
		since = inst.ActiveSince.Time
	}
	return since.Add(stallAfter)
}

// stalledRequest returns since when the cloud has not made a change that another writer requested in the Rds, and
// whether that change is overdue.
func (c Case) stalledRequest(kind v1alpha1.ChangeKind) (since time.Time, stalled bool) {
	for _, u := range c.Status.Unfulfilled {
		if u.Kind == kind {
			if c.Instance.Status == StatusStorageFull { // a full instance is not busy, and may stay full for days
				return u.SinceTime.Time, c.Now.Sub(u.SinceTime.Time) >= stallAfter
			}
			return u.SinceTime.Time, Overdue(u.SinceTime.Time, c.Instance.observed(c.Status.Instance, c.Now), c.Now)
		}
	}
	return time.Time{}, false
}
