// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// intentState is how far an intent has come.
type intentState int

const (
	waiting   intentState = iota // the Rds asks for it, the cloud has not got it
	unpatched                    // recorded, but neither the Rds nor the cloud moved: decide anew
	completed                    // the cloud has it, whatever the Rds says by now
	lost                         // the Rds no longer asks for it and the cloud has not got it
)

// intentState judges an intent by what the Rds asks for and what the cloud has.
func (c Case) intentState(i *v1alpha1.Intent) intentState {
	if c.Instance == nil {
		return waiting
	}
	if i.Kind == v1alpha1.KindFlavor {
		switch {
		case c.Instance.Flavor == i.To && c.Instance.Status == StatusActive:
			return completed
		case i.JobID != "" && c.Jobs[i.JobID].State == JobDone && c.Instance.Status == StatusActive:
			return completed // and somebody has changed it since
		case c.asksFor(i), c.Instance.Flavor == i.To:
			return waiting
		case c.Wanted.Flavor == i.From && c.Instance.Flavor == i.From && i.AskedTime == nil:
			return unpatched
		}
		return lost
	}
	from, to := gigabytes(i.From), gigabytes(i.To)
	switch {
	case c.Instance.VolumeGB >= to && c.Instance.Status == StatusActive:
		return completed
	case c.Instance.VolumeGB >= to && c.Instance.Status == StatusStorageFull && c.Spec.Apply == v1alpha1.ApplyCloud:
		return completed // and full again: the next size can be asked for
	case c.asksFor(i), c.Instance.VolumeGB >= to:
		return waiting
	case c.Instance.VolumeGB == from && i.AskedTime == nil:
		return unpatched
	}
	return lost
}

// Followed is what became of the changes that were under way.
type Followed struct {
	Status v1alpha1.Status
	Ended  []v1alpha1.Change // ours that ended, and those that others made
	Asked  []v1alpha1.Intent // ours that the Rds turned out to ask for: not recorded as decisions yet
	Failed []v1alpha1.Intent // ours whose job has failed: not recorded as decisions yet
}

// FollowUp brings the status up to what the cloud has now: it ends intents, enters changes that others made and notes the
// instance. It is a pure function; the case's own status is not altered.
func FollowUp(c Case) Followed {
	f := Followed{Status: c.Status.Copy()}
	s := &f.Status
	if c.Instance == nil {
		return f
	}
	if s.Instance != nil && s.Instance.ID != c.Instance.ID { // another database under the same name
		s.Pending, s.Overtaken, s.Deferred, s.Changes, s.Instance, s.Baseline = nil, nil, nil, nil, nil, nil
		s.FormerVolumes, s.Warned, s.Unfulfilled = nil, nil, nil
		for i := range s.Alarms.Rules { // they watch the former one, and are to be made anew
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
			VolumeGB: s.Instance.VolumeGB, Flavor: c.Instance.Flavor, VCPUs: s.Instance.VCPUs, MemoryGB: s.Instance.MemoryGB,
		}
	}
	return f
}

// followIntent ends an intent or returns it as it goes on. One that the Rds asks for was patched, whatever kept us from
// noting it.
func (f *Followed) followIntent(c Case, i *v1alpha1.Intent) *v1alpha1.Intent {
	if i == nil {
		return nil
	}
	i, failed := c.followJob(i)
	if failed {
		f.Failed = append(f.Failed, *i)
	}
	state := c.intentState(i)
	if i.AskedTime == nil && (state == waiting && !c.NoRds || state == completed) {
		i = withAskedTime(*i, c.Now)
		f.Asked = append(f.Asked, *i)
	}
	switch state {
	case completed:
		f.Ended = append(f.Ended, c.endIntent(i, v1alpha1.OutcomeCompleted))
		return nil
	case lost:
		f.Ended = append(f.Ended, c.endIntent(i, v1alpha1.OutcomeLost))
		return nil
	}
	return i
}

// withAskedTime is the intent once the Rds asks for it.
func withAskedTime(i v1alpha1.Intent, now time.Time) *v1alpha1.Intent {
	i = *i.DeepCopy()
	i.AskedTime, i.Refusal = micro(now), nil
	return &i
}

// unfulfilled are the size and the flavor that the Rds asks for without us and the cloud has not got.
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

func (c Case) endIntent(i *v1alpha1.Intent, o v1alpha1.Outcome) v1alpha1.Change {
	return v1alpha1.Change{
		Kind: i.Kind, By: v1alpha1.ByAutopilot, From: i.From, To: i.To, Metrics: i.Metrics, ValuePercent: i.ValuePercent,
		EvidenceTime: &i.EvidenceTime, DecisionTime: &i.DecisionTime, CompletionTime: *micro(c.Now), Outcome: o,
		Generation: i.Generation,
	}
}

// changesByOthers are sizes and flavors that appeared without us.
func (c Case) changesByOthers(last *v1alpha1.Instance, ended []v1alpha1.Change, open []*v1alpha1.Intent) []v1alpha1.Change {
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

// outcomeByOthers distinguishes a change that somebody wanted from a flavor of ours that the cloud left although the Rds
// asks for it.
func (c Case) outcomeByOthers(kind v1alpha1.ChangeKind, from string, ended []v1alpha1.Change, open []*v1alpha1.Intent) v1alpha1.Outcome {
	if kind == v1alpha1.KindFlavor && c.Wanted.Flavor == from {
		for _, ch := range append(c.ourFlavorChanges(), ended...) {
			if ch.Kind == kind && ch.To == from && ch.Outcome == v1alpha1.OutcomeCompleted {
				return v1alpha1.OutcomeRolledBack
			}
		}
		for _, i := range open { // the cloud had it, and left it before it was ACTIVE
			if i.Kind == kind && i.To == from && i.AskedTime != nil {
				return v1alpha1.OutcomeRolledBack
			}
		}
	}
	return v1alpha1.OutcomeCompleted
}

func gigabytes(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

func micro(t time.Time) *metav1.MicroTime {
	m := metav1.NewMicroTime(t.Truncate(time.Microsecond))
	return &m
}

func seconds(t time.Time) *metav1.Time {
	s := metav1.NewTime(t.Truncate(time.Second))
	return &s
}
