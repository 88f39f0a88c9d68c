package autopilot

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// How many changes are kept of each kind.
const (
	volumeChanges = 2
	flavorChanges = 10
)

// episodeSpan is how long a rewritten rule may take to say alarm again, if it must: five periods, delayed data, and slack.
const episodeSpan = time.Hour

// standing is how far an intent has come.
type standing int

const (
	waiting   standing = iota // the Rds asks for it, the cloud has not got it
	unpatched                 // recorded, but neither the Rds nor the cloud moved: decide anew
	completed                 // the cloud has it, whatever the Rds says by now
	lost                      // the Rds no longer asks for it and the cloud has not got it
)

// standing judges an intent by what the Rds asks for and what the cloud has.
func (c Case) standing(i *v1alpha1.Intent) standing {
	if c.Instance == nil {
		return waiting
	}
	if i.Kind == v1alpha1.KindFlavor {
		switch {
		case c.Instance.Flavor == i.To && c.Instance.Status == StatusActive:
			return completed
		case c.Wanted.Flavor == i.To, c.Instance.Flavor == i.To:
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
	case c.Wanted.VolumeGB >= to, c.Instance.VolumeGB >= to:
		return waiting
	case c.Instance.VolumeGB == from && c.Wanted.VolumeGB <= from && i.AskedTime == nil: // below: the cloud grew by itself
		return unpatched
	}
	return lost
}

// Follow brings the status up to what the cloud has now: it ends intents, enters changes that others made and notes the
// instance. It is a pure function; the case's own status is not altered.
func Follow(c Case) (status v1alpha1.Status, ended []v1alpha1.Change) {
	s := *c.Status.DeepCopy()
	if c.Instance == nil {
		return s, nil
	}
	if s.Instance != nil && s.Instance.ID != c.Instance.ID { // another database under the same name
		s.Pending, s.Overtaken, s.Deferred, s.Changes, s.Instance, s.Baseline = nil, nil, nil, nil, nil, nil
		s.FormerVolumes, s.Warned = nil, nil
	}
	last := s.Instance
	settle := func(p *v1alpha1.Intent) *v1alpha1.Intent {
		if p == nil {
			return nil
		}
		switch c.standing(p) {
		case completed:
			ended = append(ended, c.end(p, v1alpha1.OutcomeCompleted))
		case lost:
			ended = append(ended, c.end(p, v1alpha1.OutcomeLost))
		default:
			return c.asked(p)
		}
		return nil
	}
	s.Overtaken, s.Pending = settle(s.Overtaken), settle(s.Pending)
	ended = append(ended, c.others(last, ended, s.Pending, s.Overtaken)...)
	for _, ch := range ended {
		s.Changes = enter(s.Changes, ch)
	}
	s.FormerVolumes = c.formerVolumes(last)
	s.Instance = c.Instance.observed(last, c.Now)
	if s.Baseline == nil && c.Instance.Status == StatusActive && c.Instance.VCPUs > 0 {
		s.Baseline = &v1alpha1.Baseline{
			VolumeGB: Count(c.Instance.VolumeGB), Flavor: c.Instance.Flavor,
			VCPUs: Count(c.Instance.VCPUs), MemoryGB: Count(c.Instance.MemoryGB),
		}
	}
	return s, ended
}

// asked notes when the Rds was first seen to ask for it: from then on, an Rds that does not was changed by somebody.
func (c Case) asked(i *v1alpha1.Intent) *v1alpha1.Intent {
	if i.AskedTime == nil && c.standing(i) == waiting {
		i = i.DeepCopy()
		i.AskedTime = micro(c.Now)
	}
	return i
}

func (c Case) end(i *v1alpha1.Intent, o v1alpha1.Outcome) v1alpha1.Change {
	return v1alpha1.Change{
		Kind: i.Kind, By: v1alpha1.ByAutopilot, From: i.From, To: i.To, Metrics: i.Metrics, ValuePercent: i.ValuePercent,
		EvidenceTime: &i.EvidenceTime, DecisionTime: &i.DecisionTime, CompletionTime: *micro(c.Now), Outcome: o,
		Generation: i.Generation,
	}
}

// others are sizes and flavors that appeared without us.
func (c Case) others(last *v1alpha1.Instance, ended []v1alpha1.Change, open ...*v1alpha1.Intent) []v1alpha1.Change {
	if last == nil {
		return nil
	}
	ours := func(kind v1alpha1.ChangeKind, to string) bool {
		for _, ch := range ended {
			if ch.Kind == kind && ch.To == to {
				return true
			}
		}
		for _, p := range open {
			if p != nil && p.Kind == kind && p.To == to {
				return true
			}
		}
		return false
	}
	var found []v1alpha1.Change
	note := func(kind v1alpha1.ChangeKind, from, to string) {
		if from != to && !ours(kind, to) {
			found = append(found, v1alpha1.Change{
				Kind: kind, By: v1alpha1.ByOther, From: from, To: to,
				CompletionTime: *micro(c.Now), Outcome: v1alpha1.OutcomeCompleted,
			})
		}
	}
	note(v1alpha1.KindVolume, strconv.Itoa(int(last.VolumeGB)), strconv.Itoa(c.Instance.VolumeGB))
	note(v1alpha1.KindFlavor, last.Flavor, c.Instance.Flavor)
	return found
}

// enter puts a change first and drops the oldest of its kind beyond what is kept.
func enter(changes []v1alpha1.Change, ch v1alpha1.Change) []v1alpha1.Change {
	keep := map[v1alpha1.ChangeKind]int{v1alpha1.KindVolume: volumeChanges, v1alpha1.KindFlavor: flavorChanges}
	var kept []v1alpha1.Change
	for _, x := range append([]v1alpha1.Change{ch}, changes...) {
		if keep[x.Kind]--; keep[x.Kind] >= 0 {
			kept = append(kept, x)
		}
	}
	return kept
}

// Grown is when our last growth of the volume was completed, if that was within the hour in which the alarm's episode may
// still last; else zero.
func Grown(changes []v1alpha1.Change, now time.Time) time.Time {
	for _, ch := range changes {
		if ch.Kind == v1alpha1.KindVolume && ch.By == v1alpha1.ByAutopilot && ch.Outcome == v1alpha1.OutcomeCompleted {
			if now.Sub(ch.CompletionTime.Time) < episodeSpan {
				return ch.CompletionTime.Time
			}
			return time.Time{}
		}
	}
	return time.Time{}
}

// lastCompleted is when a change of a kind was last completed, whoever made it: by the time, for a clock may have been set
// back between two of them.
func lastCompleted(changes []v1alpha1.Change, kind v1alpha1.ChangeKind) (last time.Time, ok bool) {
	for _, ch := range changes {
		if ch.Kind == kind && ch.Outcome == v1alpha1.OutcomeCompleted && (!ok || ch.CompletionTime.After(last)) {
			last, ok = ch.CompletionTime.Time, true
		}
	}
	return last, ok
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
