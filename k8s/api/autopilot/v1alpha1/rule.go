// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DesiredRule is the alarm rule that a policy asks for. It is not stored; Rule describes the rule that exists in the
// cloud.
//
// +kubebuilder:object:generate=false
type DesiredRule struct {
	Metric           Metric
	ThresholdPercent int
	PeriodSeconds    int // one of Cloud Eye's periods; 1 means raw data
	Count            int // how many periods in a row must be at or over the threshold
	RepeatSeconds    int // how often Cloud Eye repeats an alarm that lasts; 0 means never
}
