// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"slices"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// difference is how a rule differs from the desired one. It is empty if the rule is as desired.
type difference string

const (
	harmless difference = "harmless" // alarms arrive as desired
	harmful  difference = "harmful"
)

// rawPeriod is the period, in Cloud Eye's API, of data that is not aggregated.
const rawPeriod = 1

// compare returns how a rule differs from the desired one. The filter of a rule on raw data is ignored, because each
// period has one datapoint.
func compare(observed, desired otc.Rule) difference {
	switch {
	case observed.Enabled != desired.Enabled, observed.Threshold != desired.Threshold,
		observed.Period != desired.Period, observed.Count != desired.Count, observed.Repeat != desired.Repeat,
		observed.Comparison != desired.Comparison, observed.ActionEnabled != desired.ActionEnabled,
		!slices.Equal(observed.AlarmActions, desired.AlarmActions), !slices.Equal(observed.OKActions, desired.OKActions):
		return harmful
	case observed.Name != desired.Name, observed.Description != desired.Description,
		observed.Filter != desired.Filter && desired.Period != rawPeriod:
		return harmless
	}
	return ""
}
