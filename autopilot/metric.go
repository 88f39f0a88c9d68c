// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"time"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// MetricRow is one row of the table of metrics. It holds everything that differs from one metric to another. A new
// metric needs a new row, a constant in the API types, and its fields in the spec.
type MetricRow struct {
	Metric v1alpha1.Metric
	Label  string // the name of the metric in a sentence

	// CloudEye is Cloud Eye's name of the metric that the alarm rule watches. Its values are in Unit
	// (RDS api: rds_monitoring_metrics_description.rst).
	CloudEye string
	Unit     string
	// UsedGB and TotalGB are Cloud Eye's names of the used and of the total space in GB, if the evidence is the used
	// space. Both are empty if the evidence is the percentage itself.
	UsedGB, TotalGB string

	// HelpedBy is the kind of change that helps against the alarm.
	HelpedBy v1alpha1.ChangeKind

	trigger       func(v1alpha1.Spec) v1alpha1.Trigger
	alarm         func(v1alpha1.Spec) v1alpha1.FlavorAlarm
	repeatSeconds int // the default
	// threshold returns the percentage in effect for a volume of that many GB; nil means the configured one.
	threshold func(volumeGB, configured int) int
	// require marks what the next flavor must have more of; nil if a flavor does not help.
	require func(*flavors.Requirements)
}

// MetricTable returns all metrics. Storage comes first, because it is decided before flavors.
func MetricTable() []MetricRow {
	return []MetricRow{
		{
			Metric: v1alpha1.MetricStorage, Label: "storage", CloudEye: "rds039_disk_util", Unit: "%",
			UsedGB: "rds048_disk_used_size", TotalGB: "rds047_disk_total_size",
			HelpedBy: v1alpha1.KindVolume,
			trigger: func(s v1alpha1.Spec) v1alpha1.Trigger {
				return v1alpha1.Trigger{ThresholdPercent: s.Storage.ThresholdPercent}
			},
			alarm:         func(s v1alpha1.Spec) v1alpha1.FlavorAlarm { return v1alpha1.FlavorAlarm(s.Storage.Alarm) },
			repeatSeconds: 900,
			threshold:     Threshold,
		},
		{
			Metric: v1alpha1.MetricCPU, Label: "CPU", CloudEye: "rds001_cpu_util", Unit: "%",
			HelpedBy:      v1alpha1.KindFlavor,
			trigger:       func(s v1alpha1.Spec) v1alpha1.Trigger { return s.Flavor.CPU },
			alarm:         func(s v1alpha1.Spec) v1alpha1.FlavorAlarm { return s.Flavor.Alarm },
			repeatSeconds: 1800,
			require:       func(r *flavors.Requirements) { r.CPU = true },
		},
		{
			Metric: v1alpha1.MetricMemory, Label: "memory", CloudEye: "rds002_mem_util", Unit: "%",
			HelpedBy:      v1alpha1.KindFlavor,
			trigger:       func(s v1alpha1.Spec) v1alpha1.Trigger { return s.Flavor.Memory },
			alarm:         func(s v1alpha1.Spec) v1alpha1.FlavorAlarm { return s.Flavor.Alarm },
			repeatSeconds: 1800,
			require:       func(r *flavors.Requirements) { r.Memory = true },
		},
	}
}

// LookupMetric returns the row of a metric. It returns an error if this version does not know the metric, because a
// newer version may have written the status.
func LookupMetric(m v1alpha1.Metric) (MetricRow, error) {
	for _, row := range MetricTable() {
		if row.Metric == m {
			return row, nil
		}
	}
	return MetricRow{}, fmt.Errorf("unknown metric %q", m)
}

// Metrics returns the names of all metrics, in the order of the table.
func Metrics() []v1alpha1.Metric {
	var metrics []v1alpha1.Metric
	for _, row := range MetricTable() {
		metrics = append(metrics, row.Metric)
	}
	return metrics
}

// InGB reports whether the evidence is the used space in GB. Its percentage depends on the size of the volume.
func (r MetricRow) InGB() bool { return r.UsedGB != "" }

// Action returns the action that helps against the alarm of the metric.
func (r MetricRow) Action() Action { return ActionFor(r.HelpedBy) }

// Enabled reports whether the policy watches the metric.
func (r MetricRow) Enabled(spec v1alpha1.Spec) bool {
	on := r.trigger(spec).Enabled
	return on == nil || *on
}

// ConfiguredThreshold returns the threshold of the policy in percent, regardless of the size of the volume.
func (r MetricRow) ConfiguredThreshold(spec v1alpha1.Spec) int {
	return int(r.trigger(spec).ThresholdPercent)
}

// EffectiveThreshold returns the percentage at which the alarm is raised for a volume of that many GB.
func (r MetricRow) EffectiveThreshold(spec v1alpha1.Spec, volumeGB int) int {
	configured := r.ConfiguredThreshold(spec)
	if r.threshold == nil {
		return configured
	}
	return r.threshold(volumeGB, configured)
}

// PeriodSeconds returns the period of the alarm rule, one of Cloud Eye's periods; 1 means raw data.
func (r MetricRow) PeriodSeconds(spec v1alpha1.Spec) int { return int(r.alarm(spec).PeriodSeconds) }

// Rule returns the alarm rule that the policy asks for with a volume of that many GB.
func (r MetricRow) Rule(spec v1alpha1.Spec, volumeGB int) v1alpha1.DesiredRule {
	a := r.alarm(spec)
	return v1alpha1.DesiredRule{
		Metric: r.Metric, ThresholdPercent: r.EffectiveThreshold(spec, volumeGB),
		PeriodSeconds: int(a.PeriodSeconds), Count: int(a.Count), RepeatSeconds: ValueOr(a.RepeatSeconds, r.repeatSeconds),
	}
}

// MeasuredOver returns the time span of one measurement. A datapoint has the time at which the span began. The used
// space is raw data without a span.
func (r MetricRow) MeasuredOver(spec v1alpha1.Spec) time.Duration {
	if r.InGB() {
		return 0
	}
	return time.Duration(r.PeriodSeconds(spec)) * time.Second
}

// Row returns the row of a metric, or a row that is switched off for an unknown metric.
func Row(m v1alpha1.Metric) MetricRow {
	row, err := LookupMetric(m)
	if err != nil { // no value reaches this threshold
		row.Label = string(m)
		row.trigger = func(v1alpha1.Spec) v1alpha1.Trigger {
			return v1alpha1.Trigger{Enabled: new(bool), ThresholdPercent: 101}
		}
		row.alarm = func(v1alpha1.Spec) v1alpha1.FlavorAlarm { return v1alpha1.FlavorAlarm{} }
	}
	return row
}

// HelpedBy returns the kind of change that helps against the alarm of a metric; empty for an unknown metric.
func HelpedBy(m v1alpha1.Metric) v1alpha1.ChangeKind { return Row(m).HelpedBy }

// Require marks what the next flavor must have more of for the sake of the metric.
func (r MetricRow) Require(next *flavors.Requirements) {
	if r.require != nil {
		r.require(next)
	}
}
