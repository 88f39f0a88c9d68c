// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"strconv"
	"strings"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// The contract's rules (design 5), written a second time, because the oracle must not call the code that it judges.

// thresholdOf is the percentage at which a volume of that many GB raises its alarm: 90, or less so that 10 GB, or an eighth
// of a small volume, lie between the alarm and read-only.
func thresholdOf(sizeGB int) int {
	size := float64(sizeGB)
	readOnly := min(size-5, 0.97*size)
	if sizeGB >= 1000 {
		readOnly = size - 30
	}
	return min(90, int(100*(readOnly-min(10, size/8))/size))
}

func full(sizeGB int, usedGB float64) bool {
	return usedGB*100 >= float64(thresholdOf(sizeGB)*sizeGB)
}

// grown returns the largest size in GB that a volume may get for that used space. A step that follows another one doubles,
// up to half of the volume. Databases of these tests never become read-only.
func grown(sizeGB int, usedGB float64, lastStepGB, maxGB int) int {
	if !full(sizeGB, usedGB) || sizeGB >= maxGB {
		return sizeGB
	}
	size := sizeGB + max(10, min(2*lastStepGB, sizeGB/2))
	for full(size, usedGB) {
		size += 10
	}
	return min(size, maxGB)
}

// shape is what a flavor of the family n1 has.
type shape struct{ vcpus, memoryGB int }

// shapeOf parses rds.<engine>.n1.<size>.<GB for each vCPU>, with or without a suffix for the mode.
func shapeOf(code string) shape {
	vcpus := map[string]int{"large": 2, "xlarge": 4, "2xlarge": 8}
	parts := strings.Split(code, ".")
	if len(parts) < 5 || parts[2] != "n1" {
		return shape{}
	}
	each, err := strconv.Atoi(parts[4])
	if err != nil {
		return shape{}
	}
	return shape{vcpus[parts[3]], each * vcpus[parts[3]]}
}

// overloaded reports whether CPU and memory are at or over 90 % of a flavor.
func overloaded(flavor string, l simcloud.Workload) (cpu, memory bool) {
	s := shapeOf(flavor)
	return l.CPUDemand > 0 && l.CPUDemand >= 0.9*float64(s.vcpus), l.MemoryDemandGB > 0 && l.MemoryDemandGB >= 0.9*float64(s.memoryGB)
}

// larger reports whether "to" is the next flavor in what the load needs, and not smaller in the rest.
func larger(from, to string, l simcloud.Workload) bool {
	cpu, memory := overloaded(from, l)
	a, b := shapeOf(from), shapeOf(to)
	return (cpu || memory) && (!cpu || b.vcpus > a.vcpus) && (!memory || b.memoryGB > a.memoryGB) &&
		b.vcpus >= a.vcpus && b.memoryGB >= a.memoryGB && b.vcpus <= 2*a.vcpus && b.memoryGB <= 2*a.memoryGB
}
