// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// How many changes are kept of each kind.
const (
	volumeChanges = 2
	flavorChanges = 10
)

// episodeSpan is how long a rewritten rule may take to be in alarm again, if it must: five periods, delayed data, and slack.
const episodeSpan = time.Hour

// prependChange puts a change first and drops the oldest of its kind beyond what is kept. One that equals an entry of the
// last day is counted there: a rival that undoes the same change again and again must not push the others out.
func prependChange(changes []v1alpha1.Change, ch v1alpha1.Change) []v1alpha1.Change {
	keep := map[v1alpha1.ChangeKind]int{v1alpha1.KindVolume: volumeChanges, v1alpha1.KindFlavor: flavorChanges}
	if i := slices.IndexFunc(changes, repeats(ch)); i >= 0 {
		ch.Count = max(changes[i].Count, 1) + 1
		changes = slices.Delete(slices.Clone(changes), i, i+1)
	}
	var kept []v1alpha1.Change
	for _, x := range append([]v1alpha1.Change{ch}, changes...) {
		if keep[x.Kind]--; keep[x.Kind] >= 0 {
			kept = append(kept, x)
		}
	}
	return kept
}

// repeats reports whether a change is counted with an entry: a size of ours that was taken back, or a flavor that others
// changed in the same way.
func repeats(ch v1alpha1.Change) func(v1alpha1.Change) bool {
	takenBack := ch.Kind == v1alpha1.KindVolume && ch.By == v1alpha1.ByAutopilot && ch.Outcome == v1alpha1.OutcomeLost
	byOthers := ch.Kind == v1alpha1.KindFlavor && ch.By == v1alpha1.ByOther
	return func(x v1alpha1.Change) bool {
		return (takenBack || byOthers) && x.Kind == ch.Kind && x.By == ch.By && x.Outcome == ch.Outcome && x.From == ch.From &&
			(x.To == ch.To || takenBack) && x.Generation == ch.Generation && ch.CompletionTime.Sub(x.CompletionTime.Time) < contestSpan
	}
}

// RecentGrowth is when our last growth of the volume was completed, if that was within the hour in which the alarm's episode
// may still last; else zero.
func RecentGrowth(changes []v1alpha1.Change, now time.Time) time.Time {
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

// lastChanged is when the cloud last made a change of that kind, whoever asked for it: by the time, for a clock may have
// been set back between two of them.
func lastChanged(changes []v1alpha1.Change, kind v1alpha1.ChangeKind) (last time.Time, ok bool) {
	for _, ch := range changes {
		if ch.Kind == kind && ch.Outcome != v1alpha1.OutcomeLost && (!ok || ch.CompletionTime.After(last)) {
			last, ok = ch.CompletionTime.Time, true
		}
	}
	return last, ok
}
