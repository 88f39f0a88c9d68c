// SPDX-License-Identifier: Apache-2.0

package main

// flavorMinutes is how long a change of flavor takes. The cloud's documents give 5 to 15 minutes.
const flavorMinutes = 10

// smallestVCPUs and largestVCPUs are the flavors that there are; growth limits each instance, as this project's default.
const smallestVCPUs, largestVCPUs, growth = 2, 32, 4

// server is what a rule can know of an instance: its vCPUs now, and its CPU usage, one value a minute.
type server struct {
	minute, vcpus int
	first         int       // vCPUs at the beginning
	used          []float64 // vCPUs; the newest is dataMinutes old
	percent       []float64 // the same, of the vCPUs at that time
	changedAt     int       // the minute in which the last change was completed; 0 if there was none
	changing      bool
}

// fresh returns how many values are newer than the last change.
func (v *server) fresh() int { return min(len(v.percent), v.minute-v.changedAt-dataMinutes) }

// flavorRule is one rule for the flavor of one instance.
type flavorRule interface {
	// next returns the vCPUs that the instance should have. It is called every minute, also during a change.
	next(v *server) int
}

// replayServer runs an instance against a demand in vCPUs, one value a minute. What it cannot serve is lost. The first
// hour is history: no rule acts.
func replayServer(vcpus int, demand []float64, r flavorRule) (sum score) {
	v := &server{vcpus: vcpus, first: vcpus}
	var all, percent []float64
	target, ready := 0, 0
	for minute, wants := range demand {
		v.minute = minute
		if v.changing && minute == ready {
			v.vcpus, v.changing, v.changedAt = target, false, minute
		}
		used := min(wants, float64(v.vcpus))
		all, percent = append(all, used), append(percent, 100*used/float64(v.vcpus))
		if percent[minute] >= 90 {
			sum[exposed]++
		}
		sum[unused] += (float64(v.vcpus) - used) / hour
		seen := minute - dataMinutes
		if seen < hour {
			continue
		}
		v.used, v.percent = all[:seen+1], percent[:seen+1]
		next := min(max(r.next(v), smallestVCPUs), largestVCPUs, growth*v.first)
		if !v.changing && next != v.vcpus {
			v.changing, target, ready = true, next, minute+flavorMinutes
			sum[changes]++
		}
	}
	return sum
}
