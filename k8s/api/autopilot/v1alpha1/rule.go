// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DesiredRule is the alarm rule that a policy asks for. It is stored nowhere: Rule is what there is of it in the cloud.
//
// +kubebuilder:object:generate=false
type DesiredRule struct {
	Metric           Metric
	ThresholdPercent int
	PeriodSeconds    int // one of Cloud Eye's; 1 is raw data
	Count            int // how many periods in a row must be over the threshold
	RepeatSeconds    int // how often Cloud Eye repeats a lasting alarm; 0 is once
}
