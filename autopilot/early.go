// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"cmp"
	"math"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// FreedSpan is the time in which nothing may have been freed before an early step. A job that cleans up regularly
	// would make the step needless, and a volume cannot shrink.
	FreedSpan = 6 * time.Hour
	// FreedPeriod is the period of the averages that NothingFreed needs.
	FreedPeriod = 5 * time.Minute
	// freedShare is the share of the used space by which a later average may be lower. Temporary files and transaction
	// logs come and go.
	freedShare = 0.01
	// earlyUsed is the percentage from which on a volume may grow before its alarm.
	earlyUsed = 60
	// earlyReach is how soon the volume must be read-only at the fast rate. Alarm, late data and growth take 13 to 20
	// minutes, and a sweep may be 5 minutes away.
	earlyReach = 30 * time.Minute
	// earlyEvery is the time in which a volume grows at most once before its alarm.
	earlyEvery = 24 * time.Hour
)

// NothingFreed reports whether the used space has not decreased in the FreedSpan before end. used holds averages of
// FreedPeriod, oldest first. Without a measurement in each half hour the answer is false.
func NothingFreed(used []Point, end time.Time) bool {
	last, highest := end.Add(-FreedSpan), 0.0
	for _, p := range used {
		if p.Time.Before(end.Add(-FreedSpan)) || p.Time.After(end) {
			continue
		}
		// A comparison with NaN is false, so a value that cannot be true counts as freed space.
		if p.Time.Sub(last) > 30*time.Minute || !(p.Value >= highest*(1-freedShare)) || math.IsInf(p.Value, 0) {
			return false
		}
		last, highest = p.Time, max(highest, p.Value)
	}
	return end.Sub(last) <= 30*time.Minute
}

// fillsSoon reports whether a volume below its alarm fills so fast that the alarm would come too late.
func fillsSoon(sizeGB int, usedGB float64, f Filling) bool {
	return f.Middle > 0 && 100*usedGB >= float64(earlyUsed*sizeGB) &&
		usedGB+f.Fast*earlyReach.Hours() >= ReadOnlyAt(sizeGB)
}

// growsEarly returns the stricter of the mode and spec.storage.early.
func (c Case) growsEarly() v1alpha1.Mode {
	return NarrowerMode(c.Mode, cmp.Or(c.Spec.Storage.Early, v1alpha1.ModeAuto))
}

// MayGrowEarly reports whether the volume should grow before its alarm, unless space was freed in the last FreedSpan.
// Only then does the caller need to read that time.
func (c Case) MayGrowEarly(e Evidence) bool {
	if c.Instance == nil || !e.Present() || c.growsEarly() == v1alpha1.ModeOff || c.IsFull(e) ||
		!fillsSoon(c.Instance.VolumeGB, e.UsedGB, e.Filling) {
		return false
	}
	recent := 0
	for _, ch := range c.Status.Changes {
		if ch.Kind != v1alpha1.KindVolume {
			continue
		}
		percent, err := strconv.ParseFloat(ch.ValuePercent, 64)
		if err == nil && e.UsedGB <= percent/100*float64(gigabytes(ch.From)) {
			return false // the volume has grown for this used space already
		}
		if c.Now.Sub(startTime(ch)) >= earlyEvery {
			continue
		}
		if err != nil || percent < float64(Threshold(gigabytes(ch.From), int(c.Spec.Storage.ThresholdPercent))) {
			return false
		}
		recent++
	}
	return recent < volumeChanges // the status keeps no more, so an earlier one may have been early
}

// isEarly reports whether a volume is to grow although its alarm is not in force and its used space is below the
// threshold.
func (c Case) isEarly(a Alarm) bool {
	return metricRow(a.Metric).InGB() && a.Evidence.Steady && c.MayGrowEarly(a.Evidence)
}
