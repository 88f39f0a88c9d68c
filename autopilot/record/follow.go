// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"strconv"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Followed holds the results of the changes that were in progress.
type Followed struct {
	Status v1alpha1.Status
	Ended  []v1alpha1.Change // our changes that ended, and changes of other writers
	// Found are our changes that were found to be requested although this process has not reported that: the service
	// had stopped in between.
	Found []v1alpha1.Change
}

// FollowUp returns the status updated to what the cloud has now: it ends changes, adds those of other writers and
// stores the observed instance. It is a pure function and does not modify the status of the case.
func FollowUp(c autopilot.Case) Followed {
	f := Followed{Status: c.Status.Copy()}
	s := &f.Status
	if c.Instance == nil {
		return f
	}
	if s.Instance != nil && s.Instance.ID != c.Instance.ID { // the name now stands for another database
		clearInstance(s)
	}
	last := s.Instance
	for _, ch := range s.PendingChanges() {
		f.follow(c, ch)
	}
	f.addOthers(c, last)
	setRequestsOfOthers(c, s)
	s.Instance = c.Instance.Observed(last, c.Now)
	setBaseline(s, *c.Instance)
	s.MaxGB = autopilot.ClampInt32(autopilot.MaxGB(c.Spec, s.Baseline, c.Instance.VolumeGB))
	return f
}

func clearInstance(s *v1alpha1.Status) {
	s.Deferred, s.Changes, s.Instance, s.Baseline, s.Warned, s.Held = nil, nil, nil, nil, nil, nil
	s.OverThresholdSince, s.Used, s.ReadOnly = nil, nil, nil
	for i := range s.Alarms.Rules { // the rules watch the former instance and must be rewritten
		r := &s.Alarms.Rules[i]
		r.Dimension, r.State, r.StateTime = "", "", nil
	}
}

// ClearOn removes what depends on autopilot being on. A change that may have started stays pending: it counts for
// cooldown and budget once autopilot is on again.
func ClearOn(c autopilot.Case, s *v1alpha1.Status) {
	s.Deferred, s.Held, s.OverThresholdSince, s.Used, s.ReadOnly = nil, nil, nil, nil, nil
	s.Changes = slices.DeleteFunc(slices.Clone(s.Changes), isRequestOfOther)
	for _, ch := range s.PendingChanges() {
		progress, _ := autopilot.RecordedProgress(*ch, c.Spec.Apply)
		mayHaveStarted := progress == autopilot.Started || c.Spec.Apply == v1alpha1.ApplyCloud && progress == autopilot.Unclear
		switch {
		case mayHaveStarted:
		case c.IsAccepted(ch):
			ch.RequestTime = c.Accepted.RequestTime
			put(s, *ch)
		case !c.IsRequested(ch) || ch.Refusal != nil:
			withdraw(s, ch, c.Now)
		}
	}
}

// setBaseline records the size of the instance at first arming. The volume is recorded as soon as it is known: without
// it, the default cap would follow the volume.
func setBaseline(s *v1alpha1.Status, inst autopilot.Instance) {
	if s.Baseline == nil && inst.VolumeGB > 0 && inst.Measurable() {
		s.Baseline = &v1alpha1.Baseline{VolumeGB: autopilot.ClampInt32(inst.VolumeGB)}
	}
	if b := s.Baseline; b != nil && b.VCPUs == 0 && inst.SizesKnown() {
		b.VCPUs, b.MemoryGB = autopilot.ClampInt32(inst.VCPUs), autopilot.ClampInt32(inst.MemoryGB)
	}
}

// SetSizes enters an instance into a case whose vCPUs and memory were not known when FollowUp saw it.
func SetSizes(c *autopilot.Case, sized autopilot.Instance) {
	c.Instance = &sized
	if seen := c.Status.Instance; seen != nil {
		seen.VCPUs, seen.MemoryGB = autopilot.ClampInt32(sized.VCPUs), autopilot.ClampInt32(sized.MemoryGB)
	}
	setBaseline(&c.Status, sized)
}

// follow updates or ends a pending change of ours. One that is found in the cloud has started, and with apply: Operator
// one that is found in the Rds, even if the service stopped before it recorded that.
func (f *Followed) follow(c autopilot.Case, ch *v1alpha1.Change) {
	if reason, why := failureOf(c, ch); reason != "" {
		fail(c, ch, reason, why)
		f.end(*ch)
		return
	}
	progress := c.Progress(ch)
	recorded, _ := autopilot.RecordedProgress(*ch, c.Spec.Apply)
	isNews := progress == autopilot.Completed || progress == autopilot.Started && isProven(c, ch)
	if ch.RequestTime == nil && (c.IsRequested(ch) || c.IsAccepted(ch) || progress == autopilot.Completed) {
		ch.RequestTime = autopilot.Micro(c.Now)
		if c.IsAccepted(ch) {
			ch.RequestTime = c.Accepted.RequestTime
		}
	}
	if recorded != autopilot.Started && isNews {
		if c.Spec.Apply == v1alpha1.ApplyCloud {
			ch.StartTime = autopilot.Micro(c.Now)
		}
		ch.Refusal = nil
		if c.Spec.Apply == v1alpha1.ApplyCloud || !c.IsAccepted(ch) { // the round of the patch has reported it
			f.Found = append(f.Found, *ch)
		}
	}
	switch progress {
	case autopilot.Completed:
		end(ch, v1alpha1.OutcomeCompleted, c.Now)
	case autopilot.Lost:
		end(ch, v1alpha1.OutcomeLost, c.Now)
	case autopilot.Undone:
		end(ch, v1alpha1.OutcomeReverted, c.Now)
	default:
		put(&f.Status, *ch)
		return
	}
	f.end(*ch)
}

// end stores a change of ours that has ended.
func (f *Followed) end(ch v1alpha1.Change) {
	put(&f.Status, ch)
	f.Ended = append(f.Ended, f.Status.Changes[0]) // with the count of equal changes
}

// isProven reports whether the change has begun or counts as begun: the cloud has the flavor, the Rds requests the change
// and an operator applies it, or nobody knows any more. A busy instance proves nothing, because it may be busy with
// another writer's change.
func isProven(c autopilot.Case, ch *v1alpha1.Change) bool {
	return c.Spec.Apply != v1alpha1.ApplyCloud || c.IsUnanswered(ch) ||
		ch.Kind == v1alpha1.KindFlavor && c.Instance.Flavor == ch.To
}

// isRequestOfOther reports whether an entry is what another writer requests in the Rds and the cloud has not made.
func isRequestOfOther(ch v1alpha1.Change) bool { return ch.IsPending() && !ch.IsDecided() }

// setRequestsOfOthers updates the pending changes of other writers: the size and the flavor that the Rds requests, that
// are not ours and that the cloud does not have.
func setRequestsOfOthers(c autopilot.Case, s *v1alpha1.Status) {
	known := slices.Clone(s.Changes)
	s.Changes = slices.DeleteFunc(slices.Clone(s.Changes), isRequestOfOther)
	request := func(kind v1alpha1.ChangeKind, from string) {
		to := c.Wanted.Of(kind)
		if autopilot.IsOurs(s.Changes, kind, to) {
			return
		}
		since := autopilot.Micro(c.Now)
		for _, ch := range known {
			if isRequestOfOther(ch) && ch.Kind == kind && ch.To == to {
				since = ch.RequestTime
			}
		}
		s.Changes = prepend(s.Changes, v1alpha1.Change{Kind: kind, By: v1alpha1.ByOther, From: from, To: to, RequestTime: since})
	}
	if c.Instance.VolumeGB > 0 && c.Wanted.VolumeGB > c.Instance.VolumeGB {
		request(v1alpha1.KindVolume, strconv.Itoa(c.Instance.VolumeGB))
	}
	if c.Wanted.Flavor != "" && c.Wanted.Flavor != c.Instance.Flavor {
		request(v1alpha1.KindFlavor, c.Instance.Flavor)
	}
}

// addOthers adds the changes of size and flavor since the last check that were not ours. A size or flavor that merely
// becomes known is no change.
func (f *Followed) addOthers(c autopilot.Case, last *v1alpha1.Instance) {
	if last == nil {
		return
	}
	if last.VolumeGB > 0 && c.Instance.VolumeGB > 0 {
		f.addOther(c, v1alpha1.KindVolume, strconv.Itoa(int(last.VolumeGB)), strconv.Itoa(c.Instance.VolumeGB))
	}
	flavor := last.Flavor
	for _, ch := range f.Ended {
		if ch.Kind == v1alpha1.KindFlavor && ch.Outcome == v1alpha1.OutcomeCompleted {
			flavor = ch.To
		}
	}
	if flavor != "" && c.Instance.Flavor != "" {
		f.addOther(c, v1alpha1.KindFlavor, flavor, c.Instance.Flavor)
	}
}

// addOther adds a change that the cloud shows, unless it is ours.
func (f *Followed) addOther(c autopilot.Case, kind v1alpha1.ChangeKind, from, to string) {
	isOurs := func(ch v1alpha1.Change) bool { return ch.Kind == kind && ch.To == to }
	if pending := f.Status.Pending(kind); from == to || slices.ContainsFunc(f.Ended, isOurs) || pending != nil && isOurs(*pending) {
		return
	}
	ch := v1alpha1.Change{Kind: kind, By: v1alpha1.ByOther, From: from, To: to}
	for _, x := range f.Status.Changes {
		if isRequestOfOther(x) && isOurs(x) {
			ch.RequestTime = x.RequestTime
		}
	}
	end(&ch, v1alpha1.OutcomeCompleted, c.Now)
	f.Status.Changes = prepend(f.Status.Changes, ch)
	if kind == v1alpha1.KindFlavor && c.Wanted.Flavor == from && f.revert(c, from) {
		return // the event about our change says it
	}
	f.Ended = append(f.Ended, f.Status.Changes[0])
}

// revert records that the cloud has taken back our flavor although the Rds requests it. It returns false if the flavor
// was not ours.
func (f *Followed) revert(c autopilot.Case, flavor string) bool {
	for i, ch := range f.Status.Changes {
		if ch.Kind != v1alpha1.KindFlavor || !ch.IsDecided() || ch.IsPending() {
			continue
		}
		isInCloud := ch.Outcome == v1alpha1.OutcomeCompleted || ch.Outcome == v1alpha1.OutcomeReverted
		if !isInCloud || ch.To != flavor {
			return false
		}
		end(&ch, v1alpha1.OutcomeReverted, c.Now)
		f.Status.Changes[i] = ch // prepend has made this list
		f.Ended = append(f.Ended, ch)
		return true
	}
	return false
}
