// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// intentState is the progress of an intent.
type intentState int

const (
	unstarted intentState = iota // recorded, and not started; decide again
	waiting                      // started, and the cloud has not made it yet
	completed                    // the cloud has made it, even if the Rds requests something else by now
	lost                         // the Rds no longer requests it, and the cloud has not made it
)

// intentState derives the progress of an intent from what the Rds requests and what the cloud has. What the cloud has
// started goes on even if the Rds no longer requests it.
func (c Case) intentState(i *v1alpha1.Intent) intentState {
	if c.Instance == nil {
		return waiting
	}
	isFlavor := i.Kind == v1alpha1.KindFlavor
	arrived, ready := c.Instance.VolumeGB >= gigabytes(i.To), c.Instance.Status == StatusActive
	if isFlavor {
		arrived = c.Instance.Flavor == i.To
	} else if c.Instance.Status == StatusStorageFull && c.Spec.Apply == v1alpha1.ApplyCloud {
		ready = true // and full again, so that the next size can be requested
	}
	switch {
	case arrived && ready, isFlavor && c.isJobDone(i): // another writer may have changed the flavor since
		return completed
	case arrived, i.JobTime != nil, c.isBusyWith(i):
		return waiting
	case c.isRequested(i) && c.Spec.Apply != v1alpha1.ApplyCloud:
		return waiting
	case c.NoRds, c.isRequested(i), i.AskedTime == nil && (!isFlavor || c.Wanted.Flavor == i.From):
		return unstarted
	}
	return lost
}

// Followed holds the results of the changes that were in progress.
type Followed struct {
	Status    v1alpha1.Status
	Ended     []v1alpha1.Change // our changes that ended, and changes of other writers
	Requested []v1alpha1.Intent // intents that were found to have started; not recorded as decisions yet
	Failed    []v1alpha1.Intent // intents that the cloud no longer makes; not recorded as decisions yet
}

// FollowUp returns the status updated to what the cloud has now: it ends intents, adds changes of other writers and
// stores the observed instance. It is a pure function and does not modify the status of the case.
func FollowUp(c Case) Followed {
	f := Followed{Status: c.Status.Copy()}
	s := &f.Status
	if c.Instance == nil {
		return f
	}
	if s.Instance != nil && s.Instance.ID != c.Instance.ID { // the name now stands for another database
		s.Pending, s.Overtaken, s.Deferred, s.Changes, s.Instance, s.Baseline = nil, nil, nil, nil, nil, nil
		s.FormerVolumes, s.Warned, s.Unfulfilled, s.Held = nil, nil, nil, nil
		s.OverThresholdSince, s.Used = nil, nil
		for i := range s.Alarms.Rules { // the rules watch the former instance and must be rewritten
			r := &s.Alarms.Rules[i]
			r.Dimension, r.State, r.StateTime = "", "", nil
		}
	}
	last := s.Instance
	s.Overtaken, s.Pending = f.followIntent(c, s.Overtaken), f.followIntent(c, s.Pending)
	f.Ended = append(f.Ended, c.changesByOthers(last, f.Ended, s.Intents())...)
	for _, ch := range f.Ended {
		s.Changes = prependChange(s.Changes, ch)
	}
	s.Unfulfilled = c.unfulfilled(s)
	s.FormerVolumes = c.formerVolumes(last)
	s.Instance = c.Instance.observed(last, c.Now)
	if s.Baseline == nil && s.Instance.VCPUs > 0 && s.Instance.MemoryGB > 0 && c.Instance.Measurable() {
		s.Baseline = &v1alpha1.Baseline{
			VolumeGB: s.Instance.VolumeGB, VCPUs: s.Instance.VCPUs, MemoryGB: s.Instance.MemoryGB,
		}
	}
	s.MaxGB = ClampInt32(MaxGB(c.Spec, s.Baseline, c.Instance.VolumeGB))
	return f
}

// followIntent returns the intent as it continues, or nil if it has ended. An intent that is found in the cloud has
// started, and with apply: Operator one that is found in the Rds, even if the service stopped before it recorded that.
func (f *Followed) followIntent(c Case, i *v1alpha1.Intent) *v1alpha1.Intent {
	if i == nil {
		return nil
	}
	i, failed := c.followJob(i)
	if failed {
		f.Failed = append(f.Failed, *i)
	}
	state := c.intentState(i)
	if (state == waiting || state == completed) && Started(*i, c.Spec.Apply) == nil {
		i = i.DeepCopy()
		if c.Spec.Apply == v1alpha1.ApplyCloud {
			i.JobTime = micro(c.Now)
		}
		i = c.asked(i)
		i.Refusal = nil
		f.Requested = append(f.Requested, *i)
	}
	switch state {
	case completed:
		f.Ended = append(f.Ended, c.endIntent(i, v1alpha1.OutcomeCompleted))
		return nil
	case lost:
		f.Ended = append(f.Ended, c.endIntent(i, v1alpha1.OutcomeLost))
		return nil
	}
	if c.isRequested(i) {
		return c.asked(i)
	}
	return i
}

// asked returns the intent with the time since which the Rds requests it.
func (c Case) asked(i *v1alpha1.Intent) *v1alpha1.Intent {
	if i.AskedTime == nil && !c.NoRds {
		i = i.DeepCopy()
		i.AskedTime = micro(c.Now)
	}
	return i
}

// unfulfilled returns the size and the flavor that another writer requested in the Rds and that the cloud has not made.
func (c Case) unfulfilled(s *v1alpha1.Status) []v1alpha1.Unfulfilled {
	var found []v1alpha1.Unfulfilled
	note := func(kind v1alpha1.ChangeKind, to string) {
		for _, i := range s.Intents() {
			if i.Kind == kind && i.To == to {
				return // ours
			}
		}
		u := v1alpha1.Unfulfilled{Kind: kind, To: to, SinceTime: *seconds(c.Now)}
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
func (c Case) endIntent(i *v1alpha1.Intent, o v1alpha1.Outcome) v1alpha1.Change {
	start := Started(*i, c.Spec.Apply)
	if start == nil {
		start = micro(c.Now)
	}
	return v1alpha1.Change{
		Kind: i.Kind, By: v1alpha1.ByAutopilot, From: i.From, To: i.To, Metrics: i.Metrics, ValuePercent: i.ValuePercent,
		EvidenceTime: &i.EvidenceTime, DecisionTime: &i.DecisionTime, StartTime: start, CompletionTime: *micro(c.Now),
		Outcome: o, Generation: i.Generation, Before: i.Load,
	}
}

// changesByOthers returns the changes of size and flavor since the last check that were not ours.
func (c Case) changesByOthers(last *v1alpha1.Instance, ended []v1alpha1.Change,
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
				CompletionTime: *micro(c.Now), Outcome: c.outcomeByOthers(kind, from, ended, open),
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
func (c Case) outcomeByOthers(kind v1alpha1.ChangeKind, from string, ended []v1alpha1.Change,
	open []*v1alpha1.Intent) v1alpha1.Outcome {
	if kind == v1alpha1.KindFlavor && c.Wanted.Flavor == from {
		for _, ch := range append(c.ourFlavorChanges(), ended...) {
			if ch.Kind == kind && ch.To == from && ch.Outcome == v1alpha1.OutcomeCompleted {
				return v1alpha1.OutcomeRolledBack
			}
		}
		for _, i := range open { // the cloud had our flavor, and reverted it before the instance was ACTIVE
			if i.Kind == kind && i.To == from && Started(*i, c.Spec.Apply) != nil {
				return v1alpha1.OutcomeRolledBack
			}
		}
	}
	return v1alpha1.OutcomeCompleted
}

// gigabytes returns the size in a record, or 0 if the text is not a number.
func gigabytes(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// micro returns a time with the precision of a MicroTime in JSON.
func micro(t time.Time) *metav1.MicroTime {
	m := metav1.NewMicroTime(t.Truncate(time.Microsecond))
	return &m
}

// seconds returns a time with the precision of a Time in JSON.
func seconds(t time.Time) *metav1.Time {
	s := metav1.NewTime(t.Truncate(time.Second))
	return &s
}
