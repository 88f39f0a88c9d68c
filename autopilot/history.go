// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// ContestSpan is how long after our change a smaller flavor of another writer counts as a contest.
	ContestSpan = 24 * time.Hour
	// ContestKept is how long a contest prevents changes of flavor, so that two tools do not restart a database in
	// turn.
	ContestKept = 7 * 24 * time.Hour
)

// OurFlavorChanges returns our changes of flavor, newest first, including lost ones.
func (c Case) OurFlavorChanges() []v1alpha1.Change {
	return slices.DeleteFunc(slices.Clone(c.Status.Changes), func(ch v1alpha1.Change) bool {
		return ch.Kind != v1alpha1.KindFlavor || ch.By != v1alpha1.ByAutopilot
	})
}

// Cooldown returns the least time between two changes of flavor.
func (c Case) Cooldown() time.Duration {
	return time.Duration(ValueOr(c.Spec.Flavor.CooldownSeconds, 3600)) * time.Second
}

// TimesText returns "once" or a number of times.
func TimesText(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// StartTime returns when a change started: see Progress. An earlier version stored only when it was decided. A change
// of another writer has only the time at which it was found.
func StartTime(ch v1alpha1.Change) time.Time {
	switch {
	case ch.StartTime != nil:
		return ch.StartTime.Time
	case ch.DecisionTime != nil:
		return ch.DecisionTime.Time
	}
	return ch.CompletionTime.Time
}

// Contest returns our change that another writer replaced by a smaller flavor within a day, and when a check first
// found that. A contest ends when the spec changes, when the Rds requests our flavor or a larger one, or after 7 days.
func (c Case) Contest() (at time.Time, last v1alpha1.Change, ok bool) {
	ours := c.OurFlavorChanges()
	if len(ours) == 0 || ours[0].Generation != c.Generation || !c.isSmaller(c.Wanted.Flavor, ours[0]) {
		return at, last, false
	}
	last = ours[0]
	until := StartTime(last).Add(ContestSpan)
	if c.Now.Before(until) {
		at = c.Now
	}
	seen := func(t time.Time) {
		if t.Before(until) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if last.Outcome == v1alpha1.OutcomeLost {
		seen(last.CompletionTime.Time)
	}
	for _, ch := range c.Status.Changes {
		if ch.Kind == v1alpha1.KindFlavor && ch.By == v1alpha1.ByOther && ch.CompletionTime.After(StartTime(last)) &&
			c.isSmaller(ch.To, last) {
			seen(ch.CompletionTime.Time)
		}
	}
	return at, last, !at.IsZero() && c.Now.Sub(at) < ContestKept
}

// isSmaller reports whether a flavor is smaller than the one that our change requested. Without a catalogue, every
// other flavor counts as smaller, so that a contest does not end because the catalogue cannot be read.
func (c Case) isSmaller(code string, ours v1alpha1.Change) bool {
	if c.Catalogue == nil {
		return code != ours.To
	}
	is, known := flavors.Find(c.Catalogue, code)
	was, knownToo := flavors.Find(c.Catalogue, ours.To)
	if known && knownToo {
		return is.VCPUs < was.VCPUs || is.MemoryGB < was.MemoryGB
	}
	return code == ours.From
}

// RevertedSize returns our last growth if the Rds stopped requesting it before the cloud made it, and neither the size
// nor the spec has changed since.
func (c Case) RevertedSize() (v1alpha1.Change, bool) {
	if c.Instance == nil {
		return v1alpha1.Change{}, false
	}
	for _, ch := range c.Status.Changes {
		if ch.Kind == v1alpha1.KindVolume {
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

// RestoredFlavor returns our last change if another writer has restored the flavor from before it. The operator then
// makes the database smaller, although no alarm is in force. This needs no catalogue, because the flavor is the same.
func (c Case) RestoredFlavor() (v1alpha1.Change, bool) {
	_, ours, ok := c.Contest()
	return ours, ok && c.Wanted.Flavor == ours.From
}

// RolledBack returns the change by which the cloud reverted our flavor although the Rds requested it, and how much
// longer that counts. The wait is 0 if there is no such change within a day.
func (c Case) RolledBack() (ch v1alpha1.Change, remaining time.Duration) {
	for _, ch := range c.Status.Changes {
		if ch.Kind != v1alpha1.KindFlavor || ch.Outcome != v1alpha1.OutcomeRolledBack {
			continue
		}
		if remaining := ContestSpan - c.Now.Sub(ch.CompletionTime.Time); remaining > 0 {
			return ch, remaining
		}
	}
	return v1alpha1.Change{}, 0
}

// ContestText returns the sentence that another writer replaced our flavor.
func (c Case) ContestText(ours v1alpha1.Change) string {
	return fmt.Sprintf("%s replaced flavor %s by %s. The flavor stays for 7 days unless the spec changes",
		WriterText(c.FlavorWriter), ours.To, c.Wanted.Flavor)
}

// WriterText names a field manager for the beginning of a sentence.
func WriterText(manager string) string {
	if manager == "" {
		return "Another writer"
	}
	return fmt.Sprintf("Field manager %q", manager)
}

// episodeSpan is how long a rewritten rule may take to be in alarm again: five periods, delayed data and a reserve.
const episodeSpan = time.Hour

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

// LastChanged returns when the cloud last completed a change of that kind by any writer.
func LastChanged(changes []v1alpha1.Change, kind v1alpha1.ChangeKind) (last time.Time, ok bool) {
	for _, ch := range changes { // newest first
		if ch.Kind == kind && ch.Outcome != v1alpha1.OutcomeLost {
			return ch.CompletionTime.Time, true
		}
	}
	return last, false
}
