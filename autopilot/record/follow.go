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
	Status    v1alpha1.Status
	Ended     []v1alpha1.Change // our changes that ended, and changes of other writers
	Requested []v1alpha1.Intent // intents that were found to have started; not recorded as decisions yet
	Failed    []v1alpha1.Intent // intents that the cloud no longer makes; not recorded as decisions yet
}

// FollowUp returns the status updated to what the cloud has now: it ends intents, adds changes of other writers and
// stores the observed instance. It is a pure function and does not modify the status of the case.
func FollowUp(c autopilot.Case) Followed {
	f := Followed{Status: c.Status.Copy()}
	s := &f.Status
	if c.Instance == nil {
		return f
	}
	if s.Instance != nil && s.Instance.ID != c.Instance.ID { // the name now stands for another database
		s.Pending, s.Overtaken, s.Deferred, s.Changes, s.Instance, s.Baseline = nil, nil, nil, nil, nil, nil
		s.Warned, s.Unfulfilled, s.Held = nil, nil, nil
		s.OverThresholdSince, s.Used, s.ReadOnly = nil, nil, nil
		for i := range s.Alarms.Rules { // the rules watch the former instance and must be rewritten
			r := &s.Alarms.Rules[i]
			r.Dimension, r.State, r.StateTime = "", "", nil
		}
	}
	last := s.Instance
	s.Overtaken, s.Pending = f.followIntent(c, s.Overtaken), f.followIntent(c, s.Pending)
	f.Ended = append(f.Ended, changesByOthers(c, last, f.Ended, s.Intents())...)
	for _, ch := range f.Ended {
		s.Changes = prependChange(s.Changes, ch)
	}
	s.Unfulfilled = unfulfilled(c, s)
	s.Instance = c.Instance.Observed(last, c.Now)
	setBaseline(s, *c.Instance)
	s.MaxGB = autopilot.ClampInt32(autopilot.MaxGB(c.Spec, s.Baseline, c.Instance.VolumeGB))
	return f
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

// followIntent returns the intent as it continues, or nil if it has ended. An intent that is found in the cloud has
// started, and with apply: Operator one that is found in the Rds, even if the service stopped before it recorded that.
func (f *Followed) followIntent(c autopilot.Case, i *v1alpha1.Intent) *v1alpha1.Intent {
	if i == nil {
		return nil
	}
	i, failed := followJob(c, i)
	if failed {
		f.Failed = append(f.Failed, *i)
	}
	progress := c.Progress(i)
	recorded, _ := autopilot.RecordedProgress(*i, c.Spec.Apply)
	isNews := progress == autopilot.Completed || progress == autopilot.Started && isProven(c, i)
	if recorded != autopilot.Started && isNews {
		i = i.DeepCopy()
		if c.Spec.Apply == v1alpha1.ApplyCloud {
			i.JobTime = autopilot.Micro(c.Now)
		}
		i = asked(c, i)
		i.Refusal = nil
		f.Requested = append(f.Requested, *i)
	}
	switch progress {
	case autopilot.Completed:
		f.Ended = append(f.Ended, endIntent(c, i, v1alpha1.OutcomeCompleted))
		return nil
	case autopilot.Lost:
		f.Ended = append(f.Ended, endIntent(c, i, v1alpha1.OutcomeLost))
		return nil
	}
	if c.IsRequested(i) {
		return asked(c, i)
	}
	return i
}

// isProven reports whether the change has begun: the cloud has the flavor, or the Rds requests the change and an
// operator applies it. A busy instance proves nothing, because it may be busy with another writer's change.
func isProven(c autopilot.Case, i *v1alpha1.Intent) bool {
	return c.Spec.Apply != v1alpha1.ApplyCloud || i.Kind == v1alpha1.KindFlavor && c.Instance.Flavor == i.To
}

// asked returns the intent with the time since which the Rds requests it.
func asked(c autopilot.Case, i *v1alpha1.Intent) *v1alpha1.Intent {
	if i.AskedTime == nil && !c.NoRds {
		i = i.DeepCopy()
		i.AskedTime = autopilot.Micro(c.Now)
	}
	return i
}

// unfulfilled returns the size and the flavor that another writer requested in the Rds and that the cloud has not made.
func unfulfilled(c autopilot.Case, s *v1alpha1.Status) []v1alpha1.Unfulfilled {
	var found []v1alpha1.Unfulfilled
	note := func(kind v1alpha1.ChangeKind, to string) {
		for _, i := range s.Intents() {
			if i.Kind == kind && i.To == to {
				return // ours
			}
		}
		u := v1alpha1.Unfulfilled{Kind: kind, To: to, SinceTime: *autopilot.Seconds(c.Now)}
		for _, known := range s.Unfulfilled {
			if known.Kind == kind && known.To == to {
				u.SinceTime = known.SinceTime
			}
		}
		found = append(found, u)
	}
	if c.Wanted.VolumeGB > c.Instance.VolumeGB {
		note(v1alpha1.KindVolume, strconv.Itoa(c.Wanted.VolumeGB))
	}
	if c.Wanted.Flavor != "" && c.Wanted.Flavor != c.Instance.Flavor {
		note(v1alpha1.KindFlavor, c.Wanted.Flavor)
	}
	return found
}

// endIntent returns the record of an intent that has ended.
func endIntent(c autopilot.Case, i *v1alpha1.Intent, o v1alpha1.Outcome) v1alpha1.Change {
	start := autopilot.Micro(c.Now)
	if p, since := autopilot.RecordedProgress(*i, c.Spec.Apply); p == autopilot.Started {
		start = autopilot.Micro(since)
	}
	return v1alpha1.Change{
		Kind: i.Kind, By: v1alpha1.ByAutopilot, From: i.From, To: i.To, Metrics: i.Metrics, ValuePercent: i.ValuePercent,
		EvidenceTime: &i.EvidenceTime, DecisionTime: &i.DecisionTime, StartTime: start, CompletionTime: *autopilot.Micro(c.Now),
		Outcome: o, Generation: i.Generation,
	}
}

// changesByOthers returns the changes of size and flavor since the last check that were not ours.
func changesByOthers(c autopilot.Case, last *v1alpha1.Instance, ended []v1alpha1.Change,
	open []*v1alpha1.Intent) []v1alpha1.Change {
	if last == nil {
		return nil
	}
	ours := func(kind v1alpha1.ChangeKind, to string) bool {
		return slices.ContainsFunc(ended, func(ch v1alpha1.Change) bool { return ch.Kind == kind && ch.To == to }) ||
			slices.ContainsFunc(open, func(i *v1alpha1.Intent) bool { return i.Kind == kind && i.To == to })
	}
	var found []v1alpha1.Change
	note := func(kind v1alpha1.ChangeKind, from, to string) {
		if from != to && !ours(kind, to) {
			found = append(found, v1alpha1.Change{
				Kind: kind, By: v1alpha1.ByOther, From: from, To: to,
				CompletionTime: *autopilot.Micro(c.Now), Outcome: outcomeByOthers(c, kind, from, ended, open),
			})
		}
	}
	note(v1alpha1.KindVolume, strconv.Itoa(int(last.VolumeGB)), strconv.Itoa(c.Instance.VolumeGB))
	flavor := last.Flavor
	for _, ch := range ended {
		if ch.Kind == v1alpha1.KindFlavor && ch.Outcome == v1alpha1.OutcomeCompleted {
			flavor = ch.To
		}
	}
	note(v1alpha1.KindFlavor, flavor, c.Instance.Flavor)
	return found
}

// outcomeByOthers returns OutcomeRolledBack if the cloud reverted our flavor although the Rds requests it. Any other
// change was made on purpose and is OutcomeCompleted.
func outcomeByOthers(c autopilot.Case, kind v1alpha1.ChangeKind, from string, ended []v1alpha1.Change,
	open []*v1alpha1.Intent) v1alpha1.Outcome {
	if kind == v1alpha1.KindFlavor && c.Wanted.Flavor == from {
		for _, ch := range append(c.OurFlavorChanges(), ended...) {
			if ch.Kind == kind && ch.To == from && ch.Outcome == v1alpha1.OutcomeCompleted {
				return v1alpha1.OutcomeRolledBack
			}
		}
		for _, i := range open { // the cloud had our flavor, and reverted it before the instance was ACTIVE
			p, _ := autopilot.RecordedProgress(*i, c.Spec.Apply)
			if i.Kind == kind && i.To == from && p == autopilot.Started {
				return v1alpha1.OutcomeRolledBack
			}
		}
	}
	return v1alpha1.OutcomeCompleted
}
