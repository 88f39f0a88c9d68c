// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Followed holds the results of the changes that were in progress.
type Followed struct {
	Status v1alpha1.Status
	Ended  []v1alpha1.Change // our changes that ended, and changes of other writers
}

// FollowUp returns the status updated to what the cloud has now: it moves our changes by the table of transitions, adds
// those of other writers and stores the observed instance. It is a pure function and does not modify the status of the
// case.
func FollowUp(c autopilot.Case) Followed {
	f := Followed{Status: c.Status.Copy()}
	s := &f.Status
	if c.Instance == nil {
		return f
	}
	if s.Instance != nil && s.Instance.ID != c.Instance.ID { // the name now stands for another database
		clearInstance(s)
		c.Status = *s
	}
	f.Ended = moveAll(c, s)
	f.addOthers(c)
	setRequestsOfOthers(c, s)
	s.Instance = c.Instance.Observed(c.Status.Instance, c.Now)
	setBaseline(s, *c.Instance)
	s.MaxGB = autopilot.ClampInt32(autopilot.MaxGB(c.Spec, s.Baseline, c.Instance.VolumeGB))
	return f
}

// moveAll moves each of our changes by what this check sees, and returns those that have ended.
func moveAll(c autopilot.Case, s *v1alpha1.Status) (ended []v1alpha1.Change) {
	for _, ch := range slices.Backward(c.Status.Changes) {
		if !change.IsOurs(ch) {
			continue
		}
		next, moved := change.Move(ch, c.Seen(ch))
		switch i := slices.IndexFunc(s.Changes, func(x v1alpha1.Change) bool { return change.IsSame(x, ch) }); {
		case i < 0:
		case moved:
			s.Changes = change.Put(s.Changes, &ch, next, c.Now)
			if !change.IsPending(next) {
				ended = append(ended, next)
			}
		default:
			s.Changes = slices.Clone(s.Changes)
			s.Changes[i] = next
		}
	}
	return ended
}

func clearInstance(s *v1alpha1.Status) {
	s.Deferred, s.Changes, s.Instance, s.Baseline, s.Warned, s.Held = nil, nil, nil, nil, nil, nil
	s.OverThresholdSince, s.Used, s.ReadOnly = nil, nil, nil
	for i := range s.Alarms.Rules { // the rules watch the former instance and must be rewritten
		r := &s.Alarms.Rules[i]
		r.Dimension, r.State, r.StateTime = "", "", nil
	}
}

// ClearOn removes what depends on autopilot being on. What depends on the instance stays, such as that it is read-only,
// and a change that may have begun: it counts for cooldown and budget once autopilot is on again.
func ClearOn(c autopilot.Case, s *v1alpha1.Status) {
	s.Deferred, s.Held, s.OverThresholdSince = nil, nil, nil
	s.Changes = slices.DeleteFunc(slices.Clone(s.Changes), change.IsRequestOfOther)
	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.KindVolume, v1alpha1.KindFlavor} {
		withdraw(c, s, kind)
	}
}

// withdraw ends our change of that kind that waits for its next attempt, if there is one.
func withdraw(c autopilot.Case, s *v1alpha1.Status, kind v1alpha1.ChangeKind) {
	if ch, ok := change.Refused(s.Changes, kind); ok {
		next, _ := change.Move(ch, change.Seen{Event: change.Unneeded, Now: c.Now, HasRds: !c.NoRds})
		s.Changes = change.Put(s.Changes, &ch, next, c.Now)
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

// setRequestsOfOthers updates the pending changes of other writers: the size and the flavor that the Rds requests, that
// are not ours and that the cloud does not have.
func setRequestsOfOthers(c autopilot.Case, s *v1alpha1.Status) {
	known := s.Changes
	s.Changes = slices.DeleteFunc(slices.Clone(known), change.IsRequestOfOther)
	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.KindVolume, v1alpha1.KindFlavor} {
		from, to := c.Instance.Of(kind), c.Wanted.Of(kind)
		isSmaller := kind == v1alpha1.KindVolume && c.Wanted.VolumeGB <= c.Instance.VolumeGB
		if c.NoRds || from == "" || to == "" || to == from || isSmaller || change.IsRequestOfOurs(s.Changes, kind, to) {
			continue
		}
		next := v1alpha1.Change{Kind: kind, By: v1alpha1.ByOther, From: from, To: to, State: v1alpha1.StateRequested, RequestTime: autopilot.Micro(c.Now)}
		if ch, ok := change.RequestedByOther(known, kind); ok && ch.To == to {
			next.RequestTime = ch.RequestTime
		}
		s.Changes = change.Put(s.Changes, nil, next, c.Now)
	}
}

// addOthers adds the changes of size and flavor since the last check that were not ours. A size or flavor that merely
// becomes known is no change.
func (f *Followed) addOthers(c autopilot.Case) {
	last := c.Status.Instance
	if last == nil {
		return
	}
	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.KindVolume, v1alpha1.KindFlavor} {
		from := autopilot.Instance{VolumeGB: int(last.VolumeGB), Flavor: last.Flavor}.Of(kind)
		isReverted := false
		for _, ch := range f.Ended {
			if isFlavor := kind == v1alpha1.KindFlavor && ch.Kind == kind; isFlavor && ch.State == v1alpha1.StateCompleted {
				from = ch.To // it may have been replaced since
			} else if isFlavor && ch.State == v1alpha1.StateReverted {
				isReverted = true // the event about our change says it
			}
		}
		if ch, ok := f.other(c, kind, from, c.Instance.Of(kind)); ok {
			f.Status.Changes = change.Put(f.Status.Changes, nil, ch, c.Now)
			if !isReverted {
				f.Ended = append(f.Ended, ch)
			}
		}
	}
}

// other returns the change that the cloud shows, unless it is ours.
func (f *Followed) other(c autopilot.Case, kind v1alpha1.ChangeKind, from, to string) (ch v1alpha1.Change, ok bool) {
	isOurs := func(x v1alpha1.Change) bool { return x.Kind == kind && x.To == to }
	pending, isPending := change.Pending(f.Status.Changes, kind)
	if from == "" || to == "" || from == to || slices.ContainsFunc(f.Ended, isOurs) || isPending && isOurs(pending) {
		return ch, false
	}
	ch = v1alpha1.Change{Kind: kind, By: v1alpha1.ByOther, From: from, To: to, State: v1alpha1.StateCompleted, EndTime: *autopilot.Micro(c.Now)}
	if requested, ok := change.RequestedByOther(f.Status.Changes, kind); ok && requested.To == to {
		ch.RequestTime = requested.RequestTime
	}
	return ch, true
}
