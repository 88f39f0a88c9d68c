// SPDX-License-Identifier: Apache-2.0

package autopilot

// Rules of the cloud for storage, in GB and percent (RDS umn: scaling_up_storage_space.rst).
const (
	volumeUnit       = 10   // sizes are multiples of it
	largeVolume      = 1000 // from here on, free space decides instead of percent
	readOnlyFree     = 5    // below, any database is read-only
	readOnlyUsed     = 97   // percent: at and above, one smaller than largeVolume is read-only …
	writableUsed     = 87   // … until it is down to this
	largeReadOnly    = 30   // free GB: below, a large one is read-only …
	largeWritable    = 150  // … until it has this much
	freeWhenAlarming = 10   // ours: this much is free when the alarm comes
	nearReadOnly     = 2    // ours: this close to being read-only there is no time to wait for others
)

// Threshold is the percentage of used storage at which a volume of that many GB raises its alarm: the configured one, or
// less, so that at least 10 GB are free when the alarm comes.
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

// nearlyReadOnly reports whether a database is read-only, or will be with 2 GB more.
func nearlyReadOnly(sizeGB int, usedGB float64) bool { return readOnly(sizeGB, usedGB+nearReadOnly) }

// roundUp is the next size the cloud can have.
func roundUp(sizeGB int) int { return (sizeGB + volumeUnit - 1) / volumeUnit * volumeUnit }

// writable reports whether a database that was read-only is writable again.
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

// newSize is the size in GB a volume should have, given what is used of it. It is a function of the used space: asked
// again with the same, it asks for no second step. It returns sizeGB where there is nothing to do, and never more than
// maxGB unless the volume is larger already.
func newSize(sizeGB int, usedGB float64, stepGB, maxGB, configuredThreshold int) int {
	if !atThreshold(sizeGB, usedGB, configuredThreshold) {
		return sizeGB
	}
	rescue := readOnly(sizeGB, usedGB)
	size := sizeGB + stepGB
	for size < maxGB && (atThreshold(size, usedGB, configuredThreshold) || rescue && !writable(size, usedGB)) {
		size += volumeUnit
	}
	return max(sizeGB, min(size, maxGB))
}
