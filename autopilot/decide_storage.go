// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// decideStorage decides on a full volume: the guards of docs/decisions.md from pending changes on.
func (c Case) decideStorage(a Alarm) Decision {
	d, inst, s := c.newDecision(a), c.Instance, c.Spec.Storage
	d.From = strconv.Itoa(inst.VolumeGB)
	if held, ok := c.checkPending(d, v1alpha1.KindVolume); ok {
		return held
	}
	to := newSize(inst.VolumeGB, a.Evidence.UsedGB, int(s.StepGB), int(s.MaxGB), int(s.ThresholdPercent))
	if c.Wanted.VolumeGB > inst.VolumeGB { // somebody else asks for a size: never ask for a smaller one than theirs
		to = min(max(to, roundUp(c.Wanted.VolumeGB)), int(s.MaxGB))
		if held, ok := c.checkUnfulfilledSize(d, a, to); ok {
			return held
		}
	}
	if inst.Status != StatusActive && inst.Status != StatusStorageFull {
		return d.decline(ReasonInstanceBusy, c.Recheck, "The instance is in %s: storage grows once it is %s", inst.Status, StatusActive)
	}
	if inst.VolumeGB >= int(s.MaxGB) {
		d.Cut = true
		return d.decline(ReasonCapReached, 0, "Storage stays at %d GB: %s %% used, but spec.storage.maxGB is %d", inst.VolumeGB, d.value(), s.MaxGB)
	}
	if held, ok := c.checkContestedSize(d); ok {
		return held
	}
	d.Action, d.Reason, d.To = ActionGrowVolume, ReasonAlarmInForce, strconv.Itoa(to)
	d.Message = fmt.Sprintf("Storage %d → %d GB: %s %% used, alarm at %d %%", inst.VolumeGB, to, d.value(),
		Threshold(inst.VolumeGB, int(s.ThresholdPercent)))
	if wish := newSize(inst.VolumeGB, a.Evidence.UsedGB, int(s.StepGB), math.MaxInt, int(s.ThresholdPercent)); wish > to {
		d.Cut = true
		d.Message += fmt.Sprintf("; %d GB are cut to spec.storage.maxGB", wish)
	}
	return c.checkMode(d)
}

// checkUnfulfilledSize holds storage back while the cloud has not got the size that somebody else put into the Rds. Once
// that has stalled and the database is about to become read-only, a size of ours that is larger than theirs is asked for.
func (c Case) checkUnfulfilledSize(d Decision, a Alarm, to int) (Decision, bool) {
	since, stalled := c.stalledRequest(v1alpha1.KindVolume)
	switch {
	case !stalled:
		return d.decline(ReasonChangePending, c.Recheck, "The Rds asks for %d GB, the cloud has %d GB: that comes first", c.Wanted.VolumeGB, c.Instance.VolumeGB), true
	case to > c.Wanted.VolumeGB && nearlyReadOnly(c.Instance.VolumeGB, a.Evidence.UsedGB):
		return d, false
	}
	return d.decline(ReasonStalled, c.Recheck, "The Rds has asked for %d GB since %s and the cloud still has %d GB, though the instance is %s: look at the operator, or correct spec.volumesize", c.Wanted.VolumeGB, at(since), c.Instance.VolumeGB, c.Instance.Status), true
}

// takenBackWait says how long to wait before a size that was taken back is asked for again: after the first time, the
// second, and all others. A database that is read-only, or nearly so, cannot wait for minutes.
func (c Case) takenBackWait(d Decision, lost v1alpha1.Change) time.Duration {
	waits := [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}
	if nearlyReadOnly(c.Instance.VolumeGB, d.Evidence.UsedGB) {
		waits = [...]time.Duration{10 * time.Second, 30 * time.Second, time.Minute}
	}
	return waits[min(max(lost.Count, 1), int32(len(waits)))-1]
}

// checkContestedSize holds storage back for a while where a size of ours was taken back before the cloud had it.
func (c Case) checkContestedSize(d Decision) (Decision, bool) {
	lost, ok := c.sizeTakenBack()
	if !ok {
		return d, false
	}
	remaining := c.takenBackWait(d, lost) - c.Now.Sub(lost.CompletionTime.Time)
	if remaining <= 0 {
		return d, false
	}
	return d.decline(ReasonContested, remaining, "%s took %s GB back to %d GB before the cloud had them, %s: storage is asked for again, but not at once", c.rival(), lost.To, c.Wanted.VolumeGB, timesText(int(max(lost.Count, 1)))), true
}

// sizeTakenBack is the last growth of ours, if the Rds stopped asking for it before the cloud had it, and neither the size
// nor the spec has changed since.
func (c Case) sizeTakenBack() (v1alpha1.Change, bool) {
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

// rival names the writer that undoes what we did, at the beginning of a sentence.
func (c Case) rival() string {
	if c.Rival == "" {
		return "Somebody"
	}
	return c.Rival
}

// checkMode holds back what comes last: mode Recommend records the action and patches nothing, and an API server that
// refused the patch is not asked again at once.
func (c Case) checkMode(d Decision) Decision {
	if c.Mode == v1alpha1.ModeRecommend {
		d.Reason = ReasonRecommend
		d.Message += " (recommended only)"
		return d
	}
	p := c.unpatched(helpedBy(d.Metric))
	if p == nil || p.Refusal == nil {
		return d
	}
	if remaining := c.untilAskedAgain(*p.Refusal); remaining > 0 {
		return d.declineRefused(*p.Refusal, remaining)
	}
	return d
}

// untilAskedAgain is how long whoever refused a change is left in peace.
func (c Case) untilAskedAgain(r v1alpha1.Refusal) time.Duration {
	if r.NextTime != nil {
		return r.NextTime.Sub(c.Now)
	}
	return refusalWait(r.Count) - c.Now.Sub(r.Time.Time)
}

// declineRefused turns a decision into the answer that the API server or the cloud refuses it.
func (d Decision) declineRefused(r v1alpha1.Refusal, remaining time.Duration) Decision {
	what, _, _ := strings.Cut(d.Message, ":")
	d.To = ""
	return d.decline(cmp.Or(Reason(r.Reason), ReasonRefused), remaining, "%s (%s): %s", whoRefuses(r), what, r.Message)
}

// refusalWait is how long to wait before the API server is asked again: 1, 2, 4 … up to 15 minutes.
func refusalWait(count int32) time.Duration {
	return min(time.Minute<<min(max(count-1, 0), 4), 15*time.Minute)
}

// checkPending holds back what is wanted of that kind while a change of ours is under way.
func (c Case) checkPending(d Decision, kind v1alpha1.ChangeKind) (Decision, bool) {
	for _, p := range c.Status.Intents() {
		if c.intentState(p) != waiting {
			continue
		}
		if r := p.Refused(); r != nil {
			if kind == v1alpha1.KindVolume && p.Kind == v1alpha1.KindFlavor {
				continue // the cloud does not make it: nothing is in the way of storage
			}
			d.Message = describeIntent(*p)
			return d.declineRefused(*r, c.untilAskedAgain(*r)), true
		}
		age := c.Now.Sub(askedAt(*p))
		if kind == v1alpha1.KindVolume && p.Kind == v1alpha1.KindFlavor && age >= flavorFirst {
			continue // a wish that the operator cannot fulfill must not let the disk run full
		}
		switch {
		case c.Instance.Status == StatusStorageFull && p.Kind == v1alpha1.KindVolume:
			return d.decline(ReasonStorageFull, c.Recheck, "The instance is in %s: %s was asked for once, and the cloud may refuse it", StatusStorageFull, describeIntent(*p)), true
		case p.JobTime != nil && c.Now.Sub(p.JobTime.Time) >= jobPatience:
			return d.decline(ReasonStalled, c.Recheck, "%s has been under way for %s, and the cloud does not end its job %s: ask its support", describeIntent(*p), durationText(c.Now.Sub(p.JobTime.Time)), p.JobID), true
		case Stalling(*p, c.Instance.observed(c.Status.Instance, c.Now), c.Now):
			advice := "look at the operator"
			if c.Spec.Apply == v1alpha1.ApplyCloud {
				advice = "the cloud is asked for it again"
			}
			return d.decline(ReasonStalled, c.Recheck, "%s was asked for %s ago and has not come, though the instance is %s: %s", describeIntent(*p), durationText(age), StatusActive, advice), true
		}
		return d.decline(ReasonChangePending, c.Recheck, "%s is under way", describeIntent(*p)), true
	}
	return d, false
}

// unpatched is the intent of that kind that was recorded and never patched; nil where there is none.
func (c Case) unpatched(kind v1alpha1.ChangeKind) *v1alpha1.Intent {
	if p := c.Status.Pending; p != nil && p.Kind == kind && c.intentState(p) == unpatched {
		return p
	}
	return nil
}

// askedAt is when the operator was asked for a change.
func askedAt(i v1alpha1.Intent) time.Time {
	if i.AskedTime != nil {
		return i.AskedTime.Time
	}
	return i.DecisionTime.Time
}

// begunAt is when the change was asked for, or the cloud began the job that is under way: one that has just begun is not overdue,
// however often the cloud failed before.
func begunAt(i v1alpha1.Intent) time.Time {
	if i.JobTime != nil {
		return i.JobTime.Time
	}
	return askedAt(i)
}

// Stalling reports whether an intent should have come by now.
func Stalling(i v1alpha1.Intent, inst *v1alpha1.Instance, now time.Time) bool {
	return Overdue(begunAt(i), inst, now)
}

// Overdue reports whether what the Rds has asked for since then should have come by now.
func Overdue(since time.Time, inst *v1alpha1.Instance, now time.Time) bool {
	at := stallsAt(since, inst)
	return !at.IsZero() && !now.Before(at)
}

// StallsAt is when an intent is overdue: 15 minutes after it was asked for, or its job began, and after the instance became ACTIVE. It is
// zero where the instance is not ACTIVE.
func StallsAt(i v1alpha1.Intent, inst *v1alpha1.Instance) time.Time {
	return stallsAt(begunAt(i), inst)
}

func stallsAt(since time.Time, inst *v1alpha1.Instance) time.Time {
	if inst == nil || inst.Status != StatusActive {
		return time.Time{}
	}
	if inst.ActiveSince != nil && inst.ActiveSince.After(since) {
		since = inst.ActiveSince.Time
	}
	return since.Add(stallAfter)
}

// stalledRequest reports since when the cloud has not got what somebody else put into the Rds, and whether that is
// overdue.
func (c Case) stalledRequest(kind v1alpha1.ChangeKind) (since time.Time, stalled bool) {
	for _, u := range c.Status.Unfulfilled {
		if u.Kind == kind {
			if c.Instance.Status == StatusStorageFull { // a full one is not busy, and may be full for days
				return u.SinceTime.Time, c.Now.Sub(u.SinceTime.Time) >= stallAfter
			}
			return u.SinceTime.Time, Overdue(u.SinceTime.Time, c.Instance.observed(c.Status.Instance, c.Now), c.Now)
		}
	}
	return time.Time{}, false
}
