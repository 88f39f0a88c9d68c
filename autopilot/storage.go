// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Rules of the cloud for storage (RDS umn: scaling_up_storage_space.rst), and margins of ours, in GB and percent.
const (
	volumeUnit    = 10   // every size is a multiple of this
	largestVolume = 4000 // the cloud has no larger one
	largeVolume   = 1000 // from this size on, free space counts instead of percent
	readOnlyFree  = 5    // with no more free space, every database is read-only
	readOnlyUsed  = 97   // percent; from here on, a database below largeVolume is read-only
	writableUsed  = 87   // percent; above it, a database that was read-only stays so
	largeReadOnly = 30   // with no more free space, a large database is read-only
	largeWritable = 150  // until it has this free space, it stays read-only
	alarmMargin   = 10   // ours: so much space, or an eighth of the volume, lies between the alarm and read-only
	nearReadOnly  = 2    // ours: so close to read-only, growth does not wait for other writers
)

// How a step depends on the time since our last growth was completed. A step that was not enough doubles.
const (
	stepDoubles = episodeSpan         // twice the last step, at most half of the volume
	stepFollows = 7 * 24 * time.Hour  // twice the last step, at most a tenth of the volume
	stepRepeats = 30 * 24 * time.Hour // the last step again, at most a tenth of the volume
)

// ReadOnlyAt returns the used space in GB at which a database with a volume of that many GB becomes read-only.
func ReadOnlyAt(sizeGB int) float64 {
	if sizeGB >= largeVolume {
		return float64(sizeGB - largeReadOnly)
	}
	return min(float64(sizeGB-readOnlyFree), float64(readOnlyUsed*sizeGB)/100)
}

// tolerance is how many GB a limit may be missed by rounding, because a percentage times a size is seldom exact.
const tolerance = 1e-6

func readOnlyNow(sizeGB int, usedGB float64) bool {
	return sizeGB > 0 && usedGB >= ReadOnlyAt(sizeGB)-tolerance
}

// NearlyReadOnly reports whether a database is read-only, or becomes so with 2 GB more.
func NearlyReadOnly(sizeGB int, usedGB float64) bool { return readOnlyNow(sizeGB, usedGB+nearReadOnly) }

// WritableAt returns the largest used space in GB at which a database that was read-only becomes writable.
func WritableAt(sizeGB int) float64 {
	if sizeGB >= largeVolume {
		return float64(sizeGB - largeWritable)
	}
	return float64(writableUsed*sizeGB) / 100
}

func writable(sizeGB int, usedGB float64) bool { return usedGB <= WritableAt(sizeGB)+tolerance }

// RoundUp returns the smallest size of the cloud that is not smaller.
func RoundUp(sizeGB int) int { return (sizeGB + volumeUnit - 1) / volumeUnit * volumeUnit }

// Threshold returns the percentage of used storage at which a volume of that many GB raises its alarm, at least 1. It
// is the configured one, or less so that 10 GB, or an eighth of a small volume, lie between the alarm and read-only. If
// the size is not known, it is the configured one.
func Threshold(sizeGB, configuredThreshold int) int {
	if sizeGB <= 0 {
		return max(1, configuredThreshold)
	}
	size := float64(sizeGB)
	derived := math.Floor(100 * (ReadOnlyAt(sizeGB) - min(alarmMargin, size/8)) / size)
	return max(1, min(configuredThreshold, int(derived)))
}

// atThreshold reports whether that much used space is at or over the threshold of that size. A size of 0 is not known.
func atThreshold(sizeGB int, usedGB float64, configuredThreshold int) bool {
	return sizeGB > 0 && usedGB >= float64(Threshold(sizeGB, configuredThreshold)*sizeGB)/100-tolerance
}

// nextStep returns the number of GB by which a volume grows at least, from the step of the policy and our last
// completed growth. Only our own completed growths count.
func nextStep(sizeGB int, policy v1alpha1.Storage, changes []v1alpha1.Change, now time.Time) int {
	least := max(int(policy.StepGB), RoundUp((sizeGB*int(policy.StepPercent)+99)/100))
	grown, ok := change.LastGrowth(changes)
	if !ok {
		return least
	}
	last := Gigabytes(grown.To) - Gigabytes(grown.From)
	step := 0
	switch age := now.Sub(grown.EndTime.Time); {
	case age < stepDoubles:
		step = min(2*last, sizeGB/2)
	case age < stepFollows:
		step = min(2*last, sizeGB/10)
	case age < stepRepeats:
		step = min(last, sizeGB/10)
	}
	return max(least, step/volumeUnit*volumeUnit)
}

// Gigabytes returns the size in a record, or 0 if the text is not a number.
func Gigabytes(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// growth holds what the size of a volume depends on, besides its present size and used space.
type growth struct {
	stepGB           int // as nextStep returns it
	maxGB            int
	thresholdPercent int  // spec.storage.thresholdPercent
	readOnly         bool // the cloud keeps the database read-only
}

// newSize returns the size in GB that a volume should have for its used space. For its own result it returns no second
// step, unless maxGB cut that result. It returns sizeGB if the volume is large enough, and never more than maxGB unless
// the volume is larger already.
func (g growth) newSize(sizeGB int, usedGB float64) int {
	limit := min(g.maxGB, 2*largestVolume) // the search must end for a used space that cannot be true
	if sizeGB <= 0 || sizeGB >= limit || !g.isShort(sizeGB, usedGB) {
		return sizeGB
	}
	size := RoundUp(sizeGB + g.stepGB) // a volume that was made elsewhere may have another size
	for size < limit && (atThreshold(size, usedGB, g.thresholdPercent) || g.readOnly && !writable(size, usedGB)) {
		size += volumeUnit
	}
	return min(size, limit)
}

// isShort reports whether a volume is too small for its used space. A comparison with NaN is false, so a value that
// cannot be true leads to no growth.
func (g growth) isShort(sizeGB int, usedGB float64) bool {
	return atThreshold(sizeGB, usedGB, g.thresholdPercent) || g.readOnly && usedGB > WritableAt(sizeGB)+tolerance
}

// NewSize returns the size in GB that the volume should have for the used space of an alarm, at most maxGB. It is the
// present size if that is large enough, or if the volume is larger than maxGB.
func (c Case) NewSize(a Alarm, maxGB int) int {
	has, s := c.Instance.VolumeGB, c.Spec.Storage
	g := growth{
		stepGB: nextStep(has, s, c.Status.Changes, c.Now), maxGB: maxGB,
		thresholdPercent: int(s.ThresholdPercent), readOnly: c.IsReadOnly(a),
	}
	return g.newSize(has, c.usedAtLeast(a))
}

// usedAtLeast returns the used space of an alarm in GB. If its measurement is from before the database became
// read-only, at least the limit counts as used, so that the growth does not wait for the next measurement.
func (c Case) usedAtLeast(a Alarm) float64 {
	used, readOnly := a.Evidence.UsedGB, c.ReadOnly(a.Evidence)
	if c.IsReadOnly(a) && Seconds(a.Evidence.Time).Before(&readOnly.SinceTime) {
		return max(used, ReadOnlyAt(c.Instance.VolumeGB))
	}
	return used
}

// IsFull reports whether the used space is at or over the threshold of the present volume.
func (c Case) IsFull(e Evidence) bool {
	return c.Instance != nil && atThreshold(c.Instance.VolumeGB, e.UsedGB, int(c.Spec.Storage.ThresholdPercent))
}

// IsNearlyReadOnly reports whether the database is read-only, or becomes so with 2 GB more.
func (c Case) IsNearlyReadOnly(e Evidence) bool {
	return c.ReadOnly(Evidence{}) != nil || e.Present() && NearlyReadOnly(c.Instance.VolumeGB, e.UsedGB)
}

// ReadOnly returns status.readOnly after a measurement of the used space was read. The cloud makes a database read-only
// at one limit and writable again at a lower one, and it does not report that. So the status keeps it.
func (c Case) ReadOnly(e Evidence) *v1alpha1.ReadOnly {
	was := c.Status.ReadOnly
	if c.Instance == nil || c.Instance.VolumeGB == 0 {
		return was
	}
	isFull := c.Instance.Status == StatusStorageFull
	isWritable := e.Present() && writable(c.Instance.VolumeGB, e.UsedGB) // also after a growth since the measurement
	isAtLimit := e.Present() && readOnlyNow(c.sizeAt(e.Time), e.UsedGB)
	switch {
	case was == nil && isFull:
		return &v1alpha1.ReadOnly{SinceTime: *Seconds(c.Now)}
	case was == nil && isAtLimit && !isWritable:
		return &v1alpha1.ReadOnly{SinceTime: *Seconds(earlier(e.Time, c.Now))}
	case was != nil && !isFull && isWritable && Seconds(e.Time).After(was.SinceTime.Time):
		return nil
	}
	return was
}

// IsReadOnly reports whether the database is read-only when a decision on its storage is made. After a growth it is not
// known before the next measurement, whoever made the growth.
func (c Case) IsReadOnly(a Alarm) bool {
	grown, ok := change.LastChanged(c.Status.Changes, v1alpha1.KindVolume)
	isMeasured := !ok || !a.Evidence.Present() || a.Evidence.Time.After(grown)
	return Row(a.Metric).InGB() && isMeasured && c.ReadOnly(a.Evidence) != nil
}

// earlier returns the earlier time. A measurement may be dated minutes ahead.
func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}
