// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"strings"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// RuleName returns the name of the rule of one metric.
func RuleName(base string, metric v1alpha1.Metric) string { return base + "_" + string(metric) }

// isName reports whether the text is the cloud name of a real object.
func isName(text string) bool {
	_, ok := v1alpha1.ParseCloudName(text)
	return ok
}

// baseOf returns the base name in a rule's name. It returns false if RuleName cannot have made that name.
func (a *Alarms) baseOf(rule string) (base string, ok bool) {
	for _, metric := range a.options.Metrics {
		if base, ok := strings.CutSuffix(rule, RuleName("", metric.Name)); ok {
			return base, isName(base)
		}
	}
	return "", false
}
