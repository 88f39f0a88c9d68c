// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/mcsps/rds-autopilot/autopilot"

// The delays of the cloud, the same for all rules (docs/cloud-facts.md): data is up to 10 minutes late, and a growth
// takes 3 to 5 minutes.
const (
	dataMinutes   = 7
	growthMinutes = 5
	hour, day     = 60, 24 * 60
	largestGB     = 4000 // the cloud has no larger volume
)

// volume is what a rule can know of a volume: its size now, and one measurement a minute.
type volume struct {
	minute, sizeGB int
	used           []float64 // GB; the newest is dataMinutes old
	sizes          []int     // GB, at the minutes of used
	readOnly       bool      // by those measurements
	grown          []int     // the minutes in which growths were completed
	growing        bool
}

func (v *volume) last() float64 { return v.used[len(v.used)-1] }

// since returns the minutes since the last growth was completed.
func (v *volume) since() int {
	if len(v.grown) == 0 {
		return v.minute + 365*day
	}
	return v.minute - v.grown[len(v.grown)-1]
}

// storageRule is one rule for the size of one volume.
type storageRule interface {
	// next returns the size in GB that the volume should have. It is called every minute, also during a growth.
	next(v *volume) int
}

// replayVolume runs a volume against a demand in GB, one value a minute. A read-only database does not write before it
// is writable again. Then it writes at once what it could not write before. The first hour is history: no rule acts.
func replayVolume(sizeGB int, demand []float64, r storageRule) (sum score) {
	v := &volume{sizeGB: sizeGB}
	var used []float64
	var sizes []int
	isReadOnly, target, ready := false, 0, 0
	for minute, wants := range demand {
		v.minute = minute
		if v.growing && minute == ready {
			v.sizeGB, v.growing, v.grown = target, false, append(v.grown, minute)
		}
		if isReadOnly && used[minute-1] <= autopilot.WritableAt(v.sizeGB) {
			isReadOnly = false
		}
		gb := min(wants, autopilot.ReadOnlyAt(v.sizeGB))
		if isReadOnly {
			gb = used[minute-1]
		}
		if isReadOnly = isReadOnly || gb >= autopilot.ReadOnlyAt(v.sizeGB); isReadOnly {
			sum[exposed]++
		}
		sum[unused] += (float64(v.sizeGB) - gb) / day
		used, sizes = append(used, gb), append(sizes, v.sizeGB)
		seen := minute - dataMinutes
		if seen < hour {
			continue
		}
		switch {
		case used[seen] <= autopilot.WritableAt(v.sizeGB):
			v.readOnly = false
		case used[seen] >= autopilot.ReadOnlyAt(sizes[seen]):
			v.readOnly = true
		}
		v.used, v.sizes = used[:seen+1], sizes[:seen+1]
		size := min(r.next(v), largestGB)
		if !v.growing && size > v.sizeGB {
			v.growing, target, ready = true, size, minute+growthMinutes
			sum[changes]++
		}
	}
	return sum
}
