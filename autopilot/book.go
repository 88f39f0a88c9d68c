// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The questions of the guards about status.changes, which is the only book about changes. Entries are newest first.

const (
	// ContestSpan is how long after our change a smaller flavor of another writer counts as a contest.
	ContestSpan = 24 * time.Hour
	// ContestKept is how long a contest prevents changes of flavor, so that no two tools restart a database in turn.
	ContestKept = 7 * 24 * time.Hour
	// episodeSpan is how long a rewritten rule may take to be in alarm again: five periods, delayed data and a reserve.
	episodeSpan = time.Hour
	// maxHold is two hours because a flavor change that takes longer has failed, and must not block others.
	maxHold = 2 * time.Hour
	// effectSpan is how long a change without effect counts. Load may be different after a week.
	effectSpan = 7 * 24 * time.Hour
	// effectPoints is the reduction, in percentage points, below which a change counts as without effect.
	effectPoints = 5
)

// StartOf returns when one of our changes counts as started: when the cloud accepted it or, if only the Rds requests
// it, when that was found. It returns false if the change was never requested, or only refused.
func StartOf(ch v1alpha1.Change) (time.Time, bool) {
	switch {
	case !ch.IsDecided():
	case ch.StartTime != nil:
		return ch.StartTime.Time, true
	case ch.Outcome == v1alpha1.OutcomeRefused, ch.Outcome == v1alpha1.OutcomeWithdrawn, isRefusal(ch.Refusal):
	case ch.RequestTime != nil:
		return ch.RequestTime.Time, true
	}
	return time.Time{}, false
}

// isRefusal reports whether a request was clearly refused. A request without a clear answer may have started.
func isRefusal(r *v1alpha1.Refusal) bool { return r != nil && r.Reason != CloudUnreachable }

// FlavorStarts returns when our changes of flavor that have ended started, newest first.
func FlavorStarts(changes []v1alpha1.Change) (starts []time.Time) {
	for _, ch := range changes {
		if at, ok := StartOf(ch); ok && ch.Kind == v1alpha1.KindFlavor && !ch.IsPending() {
			starts = append(starts, at)
		}
	}
	return starts
}

// HoldsPlace reports whether a pending change takes one of the places of --max-flavor-changes: it may be in progress,
// and was decided at most two hours ago.
func HoldsPlace(changes []v1alpha1.Change, now time.Time) bool {
	return slices.ContainsFunc(changes, func(ch v1alpha1.Change) bool {
		return ch.Kind == v1alpha1.KindFlavor && ch.IsPending() && ch.IsDecided() &&
			(ch.StartTime != nil || !isRefusal(ch.Refusal)) && now.Sub(StartedAt(ch)) < maxHold
	})
}

// LastDecided returns our last change of that kind, whatever became of it.
func LastDecided(changes []v1alpha1.Change, kind v1alpha1.ChangeKind) (last v1alpha1.Change, ok bool) {
	i := slices.IndexFunc(changes, func(ch v1alpha1.Change) bool { return ch.Kind == kind && ch.IsDecided() })
	if i < 0 {
		return last, false
	}
	return changes[i], true
}

// IsOurs reports whether the Rds requests our last change or, if it has not requested that yet, the candidate before.
func IsOurs(changes []v1alpha1.Change, kind v1alpha1.ChangeKind, wanted string) bool {
	last, ok := LastDecided(changes, kind)
	return ok && (last.To == wanted || last.RequestTime == nil && last.Replaces == wanted)
}

// LastRefusal returns the refusal of our last change of that kind that prevents another request, and the change. The
// refusal is nil if there is none, or if the change has started since.
func LastRefusal(changes []v1alpha1.Change, kind v1alpha1.ChangeKind) (r *v1alpha1.Refusal, ch v1alpha1.Change) {
	ch, _ = LastDecided(changes, kind)
	if ch.Outcome == v1alpha1.OutcomeFailed || ch.IsPending() && ch.StartTime == nil {
		return ch.Refusal, ch
	}
	return nil, ch
}

// LastGrowth returns the index of our last completed growth of the volume, or -1.
func LastGrowth(changes []v1alpha1.Change) int {
	return slices.IndexFunc(changes, func(ch v1alpha1.Change) bool {
		return ch.Kind == v1alpha1.KindVolume && ch.By == v1alpha1.ByAutopilot && ch.Outcome == v1alpha1.OutcomeCompleted
	})
}

// RecentGrowth returns when our last growth of the volume was completed, or zero if that is more than an hour ago.
// Within that hour the alarm that led to the growth may still be in force.
func RecentGrowth(changes []v1alpha1.Change, now time.Time) time.Time {
	i := LastGrowth(changes)
	if i < 0 || now.Sub(changes[i].CompletionTime.Time) >= episodeSpan {
		return time.Time{}
	}
	return changes[i].CompletionTime.Time
}

// LastChanged returns when the cloud last completed or reverted a change of that kind by any writer.
func LastChanged(changes []v1alpha1.Change, kind v1alpha1.ChangeKind) (last time.Time, ok bool) {
	for _, ch := range changes {
		isInCloud := ch.Outcome == v1alpha1.OutcomeCompleted || ch.Outcome == v1alpha1.OutcomeReverted
		if ch.Kind == kind && isInCloud {
			return ch.CompletionTime.Time, true
		}
	}
	return last, false
}

// sizeAt returns the size in GB that the volume had at a time of the cloud's clock. Between the last check that saw the
// former size and the one that finds a growth, two sizes are possible: it returns the larger one, because the next value
// comes within a minute or two. The measurement that led to a growth is from before it.
func (c Case) sizeAt(at time.Time) int {
	size := c.Instance.VolumeGB
	for _, ch := range c.Status.Changes {
		if ch.Kind != v1alpha1.KindVolume || ch.Outcome != v1alpha1.OutcomeCompleted {
			continue
		}
		isSeen := at.Add(ClockSkew).Before(earlier(ch.CompletionTime.Time, c.FormerSeen))
		if isSeen || ch.EvidenceTime != nil && !at.After(ch.EvidenceTime.Time) {
			size = Gigabytes(ch.From)
		}
	}
	return size
}

// RevertedSize returns our last growth if the Rds stopped requesting it before the cloud made it, and neither the size
// nor the spec has changed since.
func (c Case) RevertedSize() (v1alpha1.Change, bool) {
	if c.Instance == nil {
		return v1alpha1.Change{}, false
	}
	for _, ch := range c.Status.Changes {
		if ch.Kind == v1alpha1.KindVolume && !ch.IsPending() {
			return ch, ch.By == v1alpha1.ByAutopilot && ch.Outcome == v1alpha1.OutcomeLost && ch.Generation == c.Generation &&
				ch.From == strconv.Itoa(c.Instance.VolumeGB) && c.Now.Sub(ch.CompletionTime.Time) < ContestSpan
		}
	}
	return v1alpha1.Change{}, false
}

// RevertedSizeWait returns how long to wait before a reverted size is requested again: after the first, the second and
// every later time. A database that is read-only, or nearly so, cannot wait for minutes.
func (c Case) RevertedSizeWait(lost v1alpha1.Change, e Evidence) time.Duration {
	waits := [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}
	if c.IsNearlyReadOnly(e) {
		waits = [...]time.Duration{10 * time.Second, 30 * time.Second, time.Minute}
	}
	return waits[min(max(lost.Count, 1), int32(len(waits)))-1]
}

// lastFlavor returns our last change of flavor that was in the cloud or may have been. Without an instance there is none.
func (c Case) lastFlavor() (v1alpha1.Change, bool) {
	for _, ch := range c.Status.Changes {
		if _, isStarted := StartOf(ch); ch.Kind == v1alpha1.KindFlavor && isStarted && c.Instance != nil {
			return ch, true
		}
	}
	return v1alpha1.Change{}, false
}

// Contest returns our last change of flavor if another writer has replaced it by a smaller one within a day, and when
// a check first found that: now, if this is the first. A contest ends when the policy changes, when the Rds requests
// our flavor or one that is not smaller, or after 7 days. If the catalogue is not known, a contest neither begins nor
// ends, except by the flavors of the change itself.
func (c Case) Contest() (at time.Time, ours v1alpha1.Change, ok bool) {
	ours, ok = c.lastFlavor()
	if !ok || ours.Generation != c.Generation {
		return at, ours, false
	}
	smaller, known := c.isSmaller(c.Wanted.Flavor, ours)
	switch ours.Outcome {
	case v1alpha1.OutcomeCompleted:
		start, _ := StartOf(ours)
		return c.Now, ours, smaller && known && c.Now.Sub(start) < ContestSpan
	case v1alpha1.OutcomeReverted, v1alpha1.OutcomeLost:
		at = ours.CompletionTime.Time
		return at, ours, (smaller || !known) && c.Now.Sub(at) < ContestKept
	}
	return at, ours, false
}

// NeedsCatalogue reports whether only the catalogue shows if there is a contest.
func (c Case) NeedsCatalogue() bool {
	ours, ok := c.lastFlavor()
	_, known := c.isSmaller(c.Wanted.Flavor, ours)
	return ok && !known && ours.Generation == c.Generation && c.Now.Sub(StartedAt(ours)) < ContestSpan+ContestKept
}

// isSmaller reports whether a flavor is smaller than the one that our change requested, and whether that is known. A
// flavor that the cloud does not sell any more counts as not smaller.
func (c Case) isSmaller(code string, ours v1alpha1.Change) (smaller, known bool) {
	switch {
	case code == ours.To || code == "":
		return false, true
	case code == ours.From:
		return true, true
	case c.Catalogue == nil:
		return false, false
	}
	is, isSold := flavors.Find(c.Catalogue, code)
	was, wasSold := flavors.Find(c.Catalogue, ours.To)
	return isSold && wasSold && (is.VCPUs < was.VCPUs || is.MemoryGB < was.MemoryGB), true
}

// RolledBack returns our flavor that the cloud reverted although the Rds requests it, and how much longer that counts.
// The wait is 0 if there is no such change within a day.
func (c Case) RolledBack() (ours v1alpha1.Change, remaining time.Duration) {
	ours, ok := c.lastFlavor()
	if !ok || ours.Outcome != v1alpha1.OutcomeReverted || c.Wanted.Flavor != ours.To {
		return ours, 0
	}
	return ours, max(0, ContestSpan-c.Now.Sub(ours.CompletionTime.Time))
}
