// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// UntilEffective returns how long the last two changes for the metric of an alarm still count as ineffective: each time
// the metric was in force again within 7 days, less than 5 points below its former value. It returns 0 if one of them
// helped, if its value is not known, or if there are fewer.
func (c Case) UntilEffective(a Alarm) time.Duration {
	valueNow, ineffective := a.Evidence.Percent, 0
	for _, ch := range c.Status.Changes {
		i := slices.Index(ch.Metrics, a.Metric)
		if i < 0 || !change.IsOurs(ch) || ch.State != v1alpha1.StateCompleted {
			continue
		}
		values := slices.Concat([]string{ch.ValuePercent}, ch.MorePercents, make([]string, i)) // an empty one is not known
		before, err := strconv.ParseFloat(values[i], 64)
		remaining := change.WeekSpan - c.Now.Sub(ch.EndTime.Time)
		if err != nil || remaining <= 0 || ch.Generation != c.Generation || valueNow <= before-effectPoints {
			return 0
		}
		if ineffective++; ineffective == 2 {
			return remaining
		}
		valueNow = before
	}
	return 0
}
