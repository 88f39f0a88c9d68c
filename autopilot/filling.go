// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"slices"
	"time"
)

// FillingSpan is the time before a measurement of the used space from which Filling is computed.
const FillingSpan = time.Hour

// stillFilling is the time in which the used space must have risen, so that its rate counts.
const stillFilling = 10 * time.Minute

// Filling is how fast the used space changed within FillingSpan. The zero value means that it is not known.
type Filling struct {
	Known bool
	// Fast and Middle are rates in GB per hour: the one that a tenth of all rates exceeds, and the median. They are
	// negative if space was freed.
	Fast, Middle float64
}

// FillingAt returns the rates of the hour that ends at end, from measurements of the used space in GB, oldest first. It
// leaves out the largest jump, so that neither one clean-up nor one burst decides. If the used space has not risen in
// the last 10 minutes, a burst has ended, and no rate is above zero. The rates are not known if more than
// half of the hour has no measurement, or if a measurement cannot be true. It does not modify the measurements.
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
	rates := ratesOf(withoutLargestJump(parts))
	f := Filling{Known: true, Fast: quantile(rates, 1-forecastRarely) / 24, Middle: quantile(rates, 0.5) / 24}
	newest := parts[len(parts)-1]
	i := slices.IndexFunc(parts, func(p Point) bool { return newest.Time.Sub(p.Time) <= stillFilling })
	if newest.Value <= parts[i].Value {
		f.Fast, f.Middle = min(f.Fast, 0), min(f.Middle, 0)
	}
	return f
}

// withoutLargestJump returns the points with the largest difference between two neighbours removed: all points after it
// are moved by that difference. Of a steady rise this removes one of 23 differences.
func withoutLargestJump(points []Point) []Point {
	at, jump := 0, 0.0
	for i := 1; i < len(points); i++ {
		if d := points[i].Value - points[i-1].Value; math.Abs(d) > math.Abs(jump) {
			at, jump = i, d
		}
	}
	moved := slices.Clone(points)
	for i := range moved {
		if at > 0 && i >= at {
			moved[i].Value -= jump
		}
	}
	return moved
}
