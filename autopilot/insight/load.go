// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// loadDelay is how late the data of Cloud Eye may be: the load after a change is read that much later than its hour.
const loadDelay = 10 * time.Minute

// LoadOf returns the average load of the hour before a time, from the series of LoadMetrics. It returns nil if none of
// its values is known.
func LoadOf(s autopilot.Series, end time.Time) *v1alpha1.Load {
	mean := func(metric string) string {
		r, ok := readingOf(s[metric], metric, end)
		if !ok {
			return ""
		}
		return strconv.FormatFloat(r.mean, 'f', 1, 64)
	}
	l := v1alpha1.Load{
		CPUPercent:    mean(autopilot.Row(v1alpha1.MetricCPU).CloudEye),
		MemoryPercent: mean(autopilot.Row(v1alpha1.MetricMemory).CloudEye),
	}
	if l == (v1alpha1.Load{}) {
		return nil
	}
	return &l
}
