// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// nextHour is the rule that this project had before the present one. A step includes the next hour at the fast rate of
// the last hour. One step may come before the alarm.
type nextHour struct {
	stepRule
	isEarly bool // the early step was made
}

func (r *nextHour) next(v *volume) int {
	isEarly := !v.growing && !r.isEarly && len(v.grown) < 2 && v.minute%5 == 0 && v.since() > dataMinutes &&
		!r.isShort(v.sizeGB, v.last()) && fillsSoon(v)
	if v.growing || !isEarly && !r.isDue(v) {
		return v.sizeGB
	}
	r.isEarly = r.isEarly || isEarly
	_, fast := pace(v.used)
	size := r.grow(v)
	most := size + v.sizeGB/2
	for size+10 <= most && fast > 0 && v.last()+fast >= autopilot.ReadOnlyAt(size) {
		size += 10
	}
	return size
}

// pace returns the median and the fast rate of the last hour in GB per hour, as the rule computed them that the present
// one has replaced. Both are zero if the used space did not rise for half of the hour.
func pace(used []float64) (middle, fast float64) {
	const parts = 24
	if len(used) < 61 {
		return 0, 0
	}
	type point struct{ hour, gb float64 }
	var points []point
	hour := used[len(used)-61:]
	for i := range parts {
		var bucket []point
		for m, gb := range hour {
			if min(parts*m/60, parts-1) == i {
				bucket = append(bucket, point{float64(m) / 60, gb})
			}
		}
		slices.SortFunc(bucket, func(a, b point) int { return cmp.Compare(a.gb, b.gb) })
		points = append(points, bucket[len(bucket)/2])
	}
	var rates []float64
	for i, a := range points {
		for _, b := range points[i+1:] {
			if b.hour-a.hour >= (points[parts-1].hour-points[0].hour)/4 {
				rates = append(rates, (b.gb-a.gb)/(b.hour-a.hour))
			}
		}
	}
	slices.Sort(rates)
	at := func(q float64) float64 { return rates[int(math.Round(q*float64(len(rates)-1)))] }
	middle, fast = at(0.5), at(0.9)
	rising := 0.0
	for i, p := range points[1:] {
		if took := p.hour - points[i].hour; p.gb-points[i].gb > 0.25*fast*took {
			rising += took
		}
	}
	if fast <= 0 || rising < 0.5 {
		return 0, 0
	}
	return middle, fast
}

// fillsSoon reports whether the replaced rule made an early step: at least 60 % used, nothing freed for 6 hours, and
// read-only within 30 minutes.
func fillsSoon(v *volume) bool {
	middle, fast := pace(v.used)
	if middle <= 0 || v.last() < 0.6*float64(v.sizeGB) || v.last()+fast/2 < autopilot.ReadOnlyAt(v.sizeGB) || len(v.used) < 360 {
		return false
	}
	highest := 0.0
	for five := range slices.Chunk(v.used[len(v.used)-360:], 5) {
		sum := 0.0
		for _, gb := range five {
			sum += gb / 5
		}
		if sum < 0.99*highest {
			return false
		}
		highest = max(highest, sum)
	}
	return true
}
