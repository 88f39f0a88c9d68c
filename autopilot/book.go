// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The questions of the guards about status.changes for which the list alone is not enough.

const (
	// episodeSpan is how long a rewritten rule may take to be in alarm again: five periods, delayed data and a reserve.
	episodeSpan = time.Hour
	// effectPoints is the reduction, in percentage points, below which a change counts as without effect.
	effectPoints = 5
)

// RecentGrowth returns when our last growth of the volume was completed, or zero if that is more than an hour ago.
// Within that hour the alarm that led to the growth may still be in force.
func RecentGrowth(changes []v1alpha1.Change, now time.Time) time.Time {
	grown, ok := change.LastGrowth(changes)
	if !ok || now.Sub(grown.EndTime.Time) >= episodeSpan {
		return time.Time{}
	}
	return grown.EndTime.Time
}

// sizeAt returns the size in GB that the volume had at a time of the cloud's clock. Between the last check that saw the
// former size and the one that finds a growth, two sizes are possible: it returns the larger one, because the next value
// comes within a minute or two. The measurement that led to a growth is from before it.
func (c Case) sizeAt(at time.Time) int {
	size := c.Instance.VolumeGB
	for _, ch := range c.Status.Changes {
		if ch.Kind != v1alpha1.KindVolume || ch.State != v1alpha1.StateCompleted {
			continue
		}
		isSeen := at.Add(ClockSkew).Before(earlier(ch.EndTime.Time, c.FormerSeen))
		if isSeen || ch.EvidenceTime != nil && !at.After(ch.EvidenceTime.Time) {
			size = Gigabytes(ch.From)
		}
	}
	return size
}

// ResetSize returns our last growth if it was taken back, or has left no trace, before the cloud had it, and how often in
// a row that happened. Neither the size nor the spec has changed since.
func (c Case) ResetSize() (n int, last v1alpha1.Change) {
	if c.Instance == nil {
		return 0, last
	}
	return change.Resets(c.Status.Changes, c.Instance.Of(v1alpha1.KindVolume), c.Generation, c.Now)
}

// ResetSizeWait returns how long to wait before a size is requested again that was reset n times. A database that is
// read-only, or nearly so, cannot wait for minutes.
func (c Case) ResetSizeWait(n int, e Evidence) time.Duration {
	waits := [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}
	if c.IsNearlyReadOnly(e) {
		waits = [...]time.Duration{10 * time.Second, 30 * time.Second, time.Minute}
	}
	return waits[min(max(n, 1), len(waits))-1]
}

// Contest returns our last change of flavor if another writer has replaced it by a smaller one within a day, and when
// a check first found that: now, if this is the first. A contest ends when the policy changes, when the Rds requests
// our flavor or one that is not smaller, or after 7 days. If the catalogue is not known, a contest neither begins nor
// ends, except by the flavors of the change itself.
func (c Case) Contest() (at time.Time, ours v1alpha1.Change, ok bool) {
	ours, ok = change.LastFlavor(c.Status.Changes)
	if !ok || c.Instance == nil || ours.Generation != c.Generation {
		return at, ours, false
	}
	smaller, known := c.isSmaller(c.Wanted.Flavor, ours)
	switch ours.State {
	case v1alpha1.StateCompleted:
		_, found := change.Move(ours, c.Seen(ours))
		return c.Now, ours, smaller && known && found
	case v1alpha1.StateReplaced:
		at = ours.EndTime.Time
		return at, ours, (smaller || !known) && c.Now.Sub(at) < change.WeekSpan
	}
	return at, ours, false
}

// NeedsCatalogue reports whether only the catalogue shows if there is a contest.
func (c Case) NeedsCatalogue() bool {
	ours, ok := change.LastFlavor(c.Status.Changes)
	_, known := c.isSmaller(c.Wanted.Flavor, ours)
	return ok && c.Instance != nil && !known && ours.Generation == c.Generation &&
		c.Now.Sub(change.LastSign(ours)) < change.DaySpan+change.WeekSpan
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
	ours, ok := change.LastFlavor(c.Status.Changes)
	if !ok || ours.State != v1alpha1.StateReverted || c.Wanted.Flavor != ours.To {
		return ours, 0
	}
	return ours, max(0, change.DaySpan-c.Now.Sub(ours.EndTime.Time))
}

// UntilEffective returns how long the last two changes for the metric of an alarm still count as ineffective: each time
// the metric was in force again within 7 days, less than 5 points below its former value. It returns 0 if one of them
// helped, if its value is not known, or if there are fewer.
func (c Case) UntilEffective(a Alarm) time.Duration {
	valueNow, ineffective := a.Evidence.Percent, 0
	for _, ch := range c.Status.Changes {
		i := slices.Index(ch.Metrics, a.Metric)
		if i < 0 || !change.IsOurs(ch) || ch.State != v1alpha1.StateCompleted {
			continue
		}
		values := slices.Concat([]string{ch.ValuePercent}, ch.MorePercents, make([]string, i)) // an empty one is not known
		before, err := strconv.ParseFloat(values[i], 64)
		remaining := change.WeekSpan - c.Now.Sub(ch.EndTime.Time)
		if err != nil || remaining <= 0 || ch.Generation != c.Generation || valueNow <= before-effectPoints {
			return 0
		}
		if ineffective++; ineffective == 2 {
			return remaining
		}
		valueNow = before
	}
	return 0
}
