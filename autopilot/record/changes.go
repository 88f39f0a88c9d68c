// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// How many ended changes the status keeps of each kind. Our last completed growth
// is always among those of storage, because the next step depends on it. A flavor budget needs up to 10.
const (
	volumeChanges = 2
	flavorChanges = 10
)

// prependChange returns the changes with a new one first, without the oldest of its kind beyond the limit. A change
// that repeats an entry of the last day replaces it and increments its count. Otherwise a writer that reverts the same
// change again and again would push all others out.
func prependChange(changes []v1alpha1.Change, ch v1alpha1.Change) []v1alpha1.Change {
	keep := map[v1alpha1.ChangeKind]int{v1alpha1.KindVolume: volumeChanges, v1alpha1.KindFlavor: flavorChanges}
	if i := slices.IndexFunc(changes, repeats(ch)); i >= 0 {
		ch.Count = max(changes[i].Count, 1) + 1
		changes = slices.Delete(slices.Clone(changes), i, i+1)
	}
	all := append([]v1alpha1.Change{ch}, changes...)
	grown := autopilot.LastGrowth(all)
	if grown >= 0 {
		keep[v1alpha1.KindVolume]--
	}
	var kept []v1alpha1.Change
	for i, x := range all {
		if i == grown {
			kept = append(kept, x)
			continue
		}
		if keep[x.Kind]--; keep[x.Kind] >= 0 {
			kept = append(kept, x)
		}
	}
	return kept
}

// repeats returns a function that reports whether an entry counts as the same change: a size of ours that was reverted,
// or a flavor that others changed in the same way.
func repeats(ch v1alpha1.Change) func(v1alpha1.Change) bool {
	reverted := ch.Kind == v1alpha1.KindVolume && ch.By == v1alpha1.ByAutopilot && ch.Outcome == v1alpha1.OutcomeLost
	byOthers := ch.Kind == v1alpha1.KindFlavor && ch.By == v1alpha1.ByOther
	return func(x v1alpha1.Change) bool {
		return (reverted || byOthers) && x.Kind == ch.Kind && x.By == ch.By && x.Outcome == ch.Outcome && x.From == ch.From &&
			(x.To == ch.To || reverted) && x.Generation == ch.Generation &&
			ch.CompletionTime.Sub(x.CompletionTime.Time) < autopilot.ContestSpan
	}
}
