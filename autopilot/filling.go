// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"time"
)

// FillingSpan is the time before a measurement of the used space from which Filling is computed.
const FillingSpan = time.Hour

// steadyShare is the part of the fast rate that half of the hour must reach.
const steadyShare = 0.25

// Filling is how fast the used space rose within FillingSpan. The zero value means that it is not known.
type Filling struct {
	Known bool
	// Middle is the median rate in GB per hour. Fast is the rate that a tenth of all rates exceeds. Both are zero if the
	// used space did not rise for half of the hour.
	Middle, Fast float64
}

// FillingAt returns the rate of the hour that ends at end, from measurements of the used space in GB, oldest first. A
// burst or a clean-up that took less than half of the hour does not decide. The rate is not known if more than half of
// the hour has no measurement, or if a measurement cannot be true. FillingAt does not modify the measurements.
func FillingAt(used []Point, end time.Time) Filling {
	begin := end.Add(-FillingSpan)
	var hour []Point
	for _, p := range used {
		if p.Time.Before(begin) || p.Time.After(end) {
			continue
		}
		if p.Value < 0 || math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
			return Filling{}
		}
		hour = append(hour, p)
	}
	parts := gather(hour, begin, FillingSpan)
	if len(parts) < forecastBuckets/2 {
		return Filling{}
	}
	rates := ratesOf(parts)
	middle, fast := quantile(rates, 0.5)/24, quantile(rates, 1-forecastRarely)/24
	rising := time.Duration(0)
	for i, p := range parts[1:] {
		if took := p.Time.Sub(parts[i].Time); p.Value-parts[i].Value > steadyShare*fast*took.Hours() {
			rising += took
		}
	}
	if fast <= 0 || rising < FillingSpan/2 {
		return Filling{Known: true}
	}
	return Filling{Known: true, Middle: middle, Fast: fast}
}

// ReadOnlyTime returns when a database with a volume of that many GB is read-only at the fast rate, from a used space in
// GB at that time on. ok is false if the rate is not known, or if the volume lasts for a day or more.
func (f Filling) ReadOnlyTime(sizeGB int, usedGB float64, at time.Time) (readOnly time.Time, ok bool) {
	hours := max(0, (ReadOnlyAt(sizeGB)-usedGB)/f.Fast)
	if !(f.Fast > 0) || hours >= 24 {
		return time.Time{}, false
	}
	return at.Add(time.Duration(hours * float64(time.Hour))).Round(time.Second), true
}
