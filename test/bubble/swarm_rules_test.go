// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"math"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The rules of the contract are written a second time here, so that the oracle does not use the code that it judges.

// readOnlyAt returns the used space in GB at which a database becomes read-only.
func readOnlyAt(sizeGB int) float64 {
	if sizeGB >= 1000 {
		return float64(sizeGB - 30)
	}
	return min(float64(sizeGB)-5, 0.97*float64(sizeGB))
}

// writableAt returns the used space in GB at which it becomes writable again.
func writableAt(sizeGB int) float64 {
	if sizeGB >= 1000 {
		return float64(sizeGB - 150)
	}
	return 0.87 * float64(sizeGB)
}

func storageThreshold(sizeGB, given int) int {
	size := float64(sizeGB)
	return min(given, int(math.Floor(100*(readOnlyAt(sizeGB)-min(10, size/8))/size)))
}

// isOver reports whether a volume is at its threshold.
func isOver(sizeGB int, usedGB float64, given int) bool {
	return 100*usedGB >= float64(storageThreshold(sizeGB, given)*sizeGB)-1e-6
}

// growthMade is a growth that the service has requested.
type growthMade struct {
	at     time.Time // when it was requested, or when the Rds last waited for it
	stepGB int
	toGB   int
}

// firstStep returns the step of a policy without an earlier growth.
func firstStep(s v1alpha1.Storage, sizeGB int) int {
	return max(int(s.StepGB), (sizeGB*int(s.StepPercent)+999)/1000*10)
}

// largestStep returns the largest step that the last growths allow. A growth may take two hours from then.
func largestStep(sizeGB, stepGB int, made []growthMade, now time.Time) int {
	most := stepGB
	for _, g := range made {
		switch age := now.Sub(g.at) - 2*time.Hour; {
		case age < time.Hour:
			most = max(most, min(2*g.stepGB, sizeGB/2))
		case age < 7*day:
			most = max(most, min(2*g.stepGB, sizeGB/10))
		case age < 30*day:
			most = max(most, min(g.stepGB, sizeGB/10))
		}
	}
	return most
}

// largestSize returns the largest size that a volume may get for that used space.
func largestSize(sizeGB int, usedGB float64, given, stepGB int, readOnly bool) int {
	size := (sizeGB + stepGB + 9) / 10 * 10 // the rules differ from 1,000 GB on
	for size < 4000 && (isOver(size, usedGB, given) || readOnly && max(usedGB, readOnlyAt(sizeGB)) > writableAt(size)) {
		size += 10
	}
	return size
}

func valueOr(p *int32, otherwise int32) int32 {
	if p == nil {
		return otherwise
	}
	return *p
}
