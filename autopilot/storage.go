// SPDX-License-Identifier: Apache-2.0

package autopilot

// Rules of the cloud for storage (RDS umn: scaling_up_storage_space.rst), and margins of ours, in GB and percent.
const (
	volumeUnit       = 10   // every size is a multiple of this
	largeVolume      = 1000 // from this size on, free space counts instead of percent
	readOnlyFree     = 5    // with less free space, every database is read-only
	readOnlyUsed     = 97   // percent; from here on, a database below largeVolume is read-only
	writableUsed     = 87   // percent; down to here, it stays read-only
	largeReadOnly    = 30   // with less free space, a large database is read-only
	largeWritable    = 150  // until it has this free space, it stays read-only
	freeWhenAlarming = 10   // ours: so much space is free when the alarm is raised
	nearReadOnly     = 2    // ours: so close to read-only, growth does not wait for other writers
	aheadShare       = 50   // ours: percent of the volume that a fast rate may add to a step
)

// Threshold returns the percentage of used storage at which a volume of that many GB raises its alarm. It is the
// configured one, or less so that at least 10 GB are free when the alarm is raised.
func Threshold(sizeGB, configuredThreshold int) int {
	if sizeGB <= freeWhenAlarming {
		return min(configuredThreshold, 1)
	}
	return min(configuredThreshold, (100*sizeGB-100*freeWhenAlarming)/sizeGB)
}

// readOnly reports whether the cloud makes a database read-only at that fill.
func readOnly(sizeGB int, usedGB float64) bool {
	free := float64(sizeGB) - usedGB
	if sizeGB >= largeVolume {
		return free < largeReadOnly
	}
	return free < readOnlyFree || 100*usedGB >= float64(readOnlyUsed*sizeGB)
}

// nearlyReadOnly reports whether a database is read-only, or becomes so with 2 GB more.
func nearlyReadOnly(sizeGB int, usedGB float64) bool { return readOnly(sizeGB, usedGB+nearReadOnly) }

// roundUp returns the smallest size of the cloud that is not smaller.
func roundUp(sizeGB int) int { return (sizeGB + volumeUnit - 1) / volumeUnit * volumeUnit }

// writable reports whether a database that was read-only becomes writable at that fill.
func writable(sizeGB int, usedGB float64) bool {
	if sizeGB >= largeVolume {
		return float64(sizeGB)-usedGB >= largeWritable
	}
	return 100*usedGB <= float64(writableUsed*sizeGB) && float64(sizeGB)-usedGB >= readOnlyFree
}

// atThreshold reports whether that much used space is at or over the threshold of that size.
func atThreshold(sizeGB int, usedGB float64, configuredThreshold int) bool {
	return 100*usedGB >= float64(Threshold(sizeGB, configuredThreshold)*sizeGB)
}

// growth holds what the size of a volume depends on, besides its present size and used space.
type growth struct {
	stepGB, maxGB, thresholdPercent int
	// aheadGB is what will be added to the used space in the time that the new size must last.
	aheadGB float64
	// early means that the volume grows before it reaches its threshold.
	early bool
}

// newSize returns the size in GB that a volume should have for its used space. For its own result it returns no second
// step. It returns sizeGB if the volume is below its threshold and not early, and never more than maxGB unless the
// volume is larger already.
func (g growth) newSize(sizeGB int, usedGB float64) int {
	if !g.early && !atThreshold(sizeGB, usedGB, g.thresholdPercent) {
		return sizeGB
	}
	rescue := readOnly(sizeGB, usedGB)
	size := sizeGB + g.stepGB
	for size < g.maxGB && (atThreshold(size, usedGB, g.thresholdPercent) || rescue && !writable(size, usedGB)) {
		size += volumeUnit
	}
	most := min(g.maxGB, size+aheadShare*sizeGB/100)
	for size+volumeUnit <= most && g.aheadGB > 0 && usedGB+g.aheadGB >= ReadOnlyAt(size) {
		size += volumeUnit
	}
	return max(sizeGB, min(size, g.maxGB))
}
