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

// AlarmState is the state of an alarm rule in Cloud Eye.
type AlarmState struct {
	State v1alpha1.State
	Since time.Time
}

// EvidenceRequest names one measurement.
type EvidenceRequest struct {
	Metric        v1alpha1.Metric
	Dimension     string // name:value of the rule's dimension; empty means the dimension of the instance
	PeriodSeconds int
	NotBefore     time.Time // reject cached values that were read before this time, because they do not contain the news
}
