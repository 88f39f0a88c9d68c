// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"cmp"
	"fmt"
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

// EarlyGuard is a condition that prevents growth before the alarm.
type EarlyGuard string

// The guards, in the order in which EarlyGuard checks them.
const (
	EarlyNoData       EarlyGuard = "NoData"
	EarlyOff          EarlyGuard = "Off"
	EarlyAtThreshold  EarlyGuard = "AtThreshold"
	EarlyNotRising    EarlyGuard = "NotRising"
	EarlyLowUse       EarlyGuard = "LowUse"
	EarlySlow         EarlyGuard = "Slow"
	EarlyAlreadyGrown EarlyGuard = "AlreadyGrown"
	EarlyRecentStep   EarlyGuard = "RecentStep"
	EarlyRecentSteps  EarlyGuard = "RecentSteps"
	EarlySpaceFreed   EarlyGuard = "SpaceFreed"
)

// Text returns the condition in words, without a capital and a full stop.
func (g EarlyGuard) Text() string {
	switch g {
	case EarlyNoData:
		return "the used space is not known"
	case EarlyOff:
		return "spec.storage.early or the mode is Off"
	case EarlyAtThreshold:
		return "the used space is at its threshold already"
	case EarlyNotRising:
		return "the used space did not rise for half of the last hour, or its rate is not known"
	case EarlyLowUse:
		return fmt.Sprintf("less than %d %% used", earlyUsed)
	case EarlySlow:
		return fmt.Sprintf("not read-only within %s at this rate", durationText(earlyReach))
	case EarlyAlreadyGrown:
		return "the volume has grown for this used space already"
	case EarlyRecentStep:
		return "the volume grew without an alarm in the last " + durationText(earlyEvery)
	case EarlyRecentSteps:
		return fmt.Sprintf("the volume grew %s in the last %s", timesText(volumeChanges), durationText(earlyEvery))
	case EarlySpaceFreed:
		return fmt.Sprintf("space was freed in the last %s, or measurements are missing", durationText(FreedSpan))
	}
	return string(g)
}

// fillGuard returns what prevents an early step for the used space and its rate; empty if nothing does. A comparison
// with NaN is false, so a value that cannot be true prevents the step.
func fillGuard(sizeGB int, usedGB float64, f Filling) EarlyGuard {
	switch {
	case !(f.Middle > 0):
		return EarlyNotRising
	case !(100*usedGB >= float64(earlyUsed*sizeGB)):
		return EarlyLowUse
	case !(usedGB+f.Fast*earlyReach.Hours() >= ReadOnlyAt(sizeGB)):
		return EarlySlow
	}
	return ""
}

// fillsSoon reports whether a volume below its alarm fills so fast that the alarm would come too late.
func fillsSoon(sizeGB int, usedGB float64, f Filling) bool { return fillGuard(sizeGB, usedGB, f) == "" }

// growsEarly returns the stricter of the mode and spec.storage.early.
func (c Case) growsEarly() v1alpha1.Mode {
	return NarrowerMode(c.Mode, cmp.Or(c.Spec.Storage.Early, v1alpha1.ModeAuto))
}

// EarlyGuard returns the first condition that prevents growth before the alarm; empty if none does. It is a pure
// function.
func (c Case) EarlyGuard(e Evidence) EarlyGuard {
	switch {
	case c.Instance == nil || !e.Present():
		return EarlyNoData
	case c.growsEarly() == v1alpha1.ModeOff:
		return EarlyOff
	case c.IsFull(e):
		return EarlyAtThreshold
	}
	if guard := fillGuard(c.Instance.VolumeGB, e.UsedGB, e.Filling); guard != "" {
		return guard
	}
	if guard := c.earlyHistoryGuard(e); guard != "" {
		return guard
	}
	if !e.Steady { // the last guard, because MayGrowEarly asks for all others
		return EarlySpaceFreed
	}
	return ""
}

// earlyHistoryGuard returns which of the last growths prevents an early step; empty if none does.
func (c Case) earlyHistoryGuard(e Evidence) EarlyGuard {
	recent := 0
	for _, ch := range c.Status.Changes {
		if ch.Kind != v1alpha1.KindVolume {
			continue
		}
		percent, err := strconv.ParseFloat(ch.ValuePercent, 64)
		if err == nil && e.UsedGB <= percent/100*float64(gigabytes(ch.From)) {
			return EarlyAlreadyGrown
		}
		if c.Now.Sub(startTime(ch)) >= earlyEvery {
			continue
		}
		if err != nil || percent < float64(Threshold(gigabytes(ch.From), int(c.Spec.Storage.ThresholdPercent))) {
			return EarlyRecentStep
		}
		recent++
	}
	if recent >= volumeChanges { // the status keeps no more, so an earlier one may have been early
		return EarlyRecentSteps
	}
	return ""
}

// MayGrowEarly reports whether the volume should grow before its alarm, unless space was freed in the last FreedSpan.
// Only then does the caller need to read that time.
func (c Case) MayGrowEarly(e Evidence) bool {
	guard := c.EarlyGuard(e)
	return guard == "" || guard == EarlySpaceFreed
}

// isEarly reports whether a volume is to grow although its alarm is not in force and its used space is below the
// threshold.
func (c Case) isEarly(a Alarm) bool {
	return metricRow(a.Metric).InGB() && c.EarlyGuard(a.Evidence) == ""
}
