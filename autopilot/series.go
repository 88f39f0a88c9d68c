// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Point is one measurement.
type Point struct {
	Time  time.Time
	Value float64
}

// Past holds the measurements of one database over a time span, oldest first.
type Past struct {
	UsedGB, SizeGB []Point // of the volume
	Percent        map[v1alpha1.Metric][]Point
}
