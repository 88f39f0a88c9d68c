// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Point is one measurement.
type Point struct {
	Time  time.Time
	Value float64
}

// Series holds measurements by Cloud Eye's name of the metric, oldest first, in Cloud Eye's unit.
type Series map[string][]Point

// Newest returns the newest measurement of a metric. ok is false if there is none, or if its value cannot be true: it
// is negative, infinite or not a number.
func (s Series) Newest(metric string) (p Point, ok bool) {
	points := s[metric]
	if len(points) == 0 {
		return p, false
	}
	p = points[len(points)-1]
	return p, p.Value >= 0 && !math.IsInf(p.Value, 0)
}

const (
	// CapSpan is the time span of the measurements from which the date of the cap is computed.
	CapSpan = 14 * 24 * time.Hour
	// CapPeriod is the period of their averages. The last day has 24 of them.
	CapPeriod = time.Hour
)

// Past holds the measurements of one database over a time span, oldest first.
type Past struct {
	UsedGB, SizeGB []Point // of the volume
	Percent        map[v1alpha1.Metric][]Point
}
