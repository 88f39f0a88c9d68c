// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// changesKept is how many changes of each kind the status keeps, besides our last completed growth, because the next
// step depends on that. A flavor budget needs up to 10.
const changesKept = 9

// put enters one of our changes into the book: in place of its pending entry, else as the newest.
func put(s *v1alpha1.Status, ch v1alpha1.Change) {
	for i, x := range s.Changes {
		if x.Kind == ch.Kind && x.IsPending() && x.IsDecided() {
			s.Changes = slices.Delete(slices.Clone(s.Changes), i, i+1)
			break
		}
	}
	s.Changes = prepend(s.Changes, ch)
}

// prepend returns the changes with a new one first, without the oldest of its kind beyond the limit. A change that
// repeats an entry of the last day replaces it and increments its count. Otherwise a writer that reverts the same
// change again and again would push all others out.
func prepend(changes []v1alpha1.Change, ch v1alpha1.Change) []v1alpha1.Change {
	if i := slices.IndexFunc(changes, repeats(ch)); i >= 0 {
		if !isUnrequested(ch) {
			ch.Count = max(changes[i].Count, 1) + 1
		}
		changes = slices.Delete(slices.Clone(changes), i, i+1)
	}
	all := append([]v1alpha1.Change{ch}, changes...)
	grown := autopilot.LastGrowth(all)
	count := make(map[v1alpha1.ChangeKind]int)
	var kept []v1alpha1.Change
	for i, x := range all {
		if i != grown {
			count[x.Kind]++
		}
		if i == grown || count[x.Kind] <= changesKept {
			kept = append(kept, x)
		}
	}
	return kept
}

// isUnrequested reports whether a change ended without being requested successfully. Only the last one says anything.
func isUnrequested(ch v1alpha1.Change) bool {
	return ch.Outcome == v1alpha1.OutcomeWithdrawn || ch.Outcome == v1alpha1.OutcomeRefused
}

// repeats returns a function that reports whether an entry counts as the same change: a size of ours that was reset or
// failed, a change that others made in the same way, or one that was never requested.
func repeats(ch v1alpha1.Change) func(v1alpha1.Change) bool {
	isLost := ch.Kind == v1alpha1.KindVolume && ch.IsDecided() &&
		(ch.Outcome == v1alpha1.OutcomeLost || ch.Outcome == v1alpha1.OutcomeFailed)
	byOthers := ch.Kind == v1alpha1.KindFlavor && !ch.IsDecided() && !ch.IsPending()
	return func(x v1alpha1.Change) bool {
		if isUnrequested(ch) {
			return x.Kind == ch.Kind && isUnrequested(x)
		}
		return (isLost || byOthers) && x.Kind == ch.Kind && x.By == ch.By && x.Outcome == ch.Outcome && x.From == ch.From &&
			(x.To == ch.To || isLost) && x.Generation == ch.Generation &&
			ch.CompletionTime.Sub(x.CompletionTime.Time) < autopilot.ContestSpan
	}
}
