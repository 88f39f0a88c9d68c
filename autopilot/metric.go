// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"time"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// MetricRow is one row of the table of metrics: everything that differs from one metric to another. A new metric is a new
// row, a constant in the API types, and its fields in the spec.
type MetricRow struct {
	Metric v1alpha1.Metric
	Label  string // the metric's name within a sentence

	// CloudEye is Cloud Eye's name of the metric that the alarm rule watches, in Unit
	// (RDS api: rds_monitoring_metrics_description.rst).
	CloudEye string
	Unit     string
	// UsedGB and TotalGB are Cloud Eye's names of the used and of the total space, in GB, where the evidence is the used
	// space. Both are empty where the evidence is the percentage itself.
	UsedGB, TotalGB string

	// HelpedBy is the kind of change that helps against the alarm.
	HelpedBy v1alpha1.ChangeKind

	trigger       func(v1alpha1.Spec) v1alpha1.Trigger
	alarm         func(v1alpha1.Spec) v1alpha1.FlavorAlarm
	repeatSeconds int // where the spec does not say
	// threshold is the percentage in effect for a volume of that many GB; nil: the configured one.
	threshold func(volumeGB, configured int) int
	// require marks what the next flavor must have more of; nil where a flavor does not help.
	require func(*flavors.Requirements)
}

// MetricTable returns all metrics. Storage is first: it is decided before flavors.
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

// LookupMetric returns the row of a metric. It is an error where this version does not know the metric: a status may be
// written by a newer version.
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

// InGB reports whether the evidence is the used space in GB: its percentage depends on the size of the volume.
func (r MetricRow) InGB() bool { return r.UsedGB != "" }

// Action is what a decision about the metric does to the Rds.
func (r MetricRow) Action() Action { return actionFor(r.HelpedBy) }

// Enabled reports whether the policy watches the metric.
func (r MetricRow) Enabled(spec v1alpha1.Spec) bool {
	on := r.trigger(spec).Enabled
	return on == nil || *on
}

// ConfiguredThreshold is the policy's threshold in percent, whatever the size of the volume.
func (r MetricRow) ConfiguredThreshold(spec v1alpha1.Spec) int {
	return int(r.trigger(spec).ThresholdPercent)
}

// EffectiveThreshold is the percentage at which the alarm comes where the volume has that many GB.
func (r MetricRow) EffectiveThreshold(spec v1alpha1.Spec, volumeGB int) int {
	configured := r.ConfiguredThreshold(spec)
	if r.threshold == nil {
		return configured
	}
	return r.threshold(volumeGB, configured)
}

// PeriodSeconds is the period of the alarm rule, one of Cloud Eye's: 1 is raw data.
func (r MetricRow) PeriodSeconds(spec v1alpha1.Spec) int { return int(r.alarm(spec).PeriodSeconds) }

// Rule is the alarm rule that the policy asks for where the volume has that many GB.
func (r MetricRow) Rule(spec v1alpha1.Spec, volumeGB int) v1alpha1.DesiredRule {
	a := r.alarm(spec)
	return v1alpha1.DesiredRule{
		Metric: r.Metric, ThresholdPercent: r.EffectiveThreshold(spec, volumeGB),
		PeriodSeconds: int(a.PeriodSeconds), Count: int(a.Count), RepeatSeconds: valueOr(a.RepeatSeconds, r.repeatSeconds),
	}
}

// measuredOver is how long one measurement takes: its datapoint bears the time at which it began. The used space is raw
// data.
func (r MetricRow) measuredOver(spec v1alpha1.Spec) time.Duration {
	if r.InGB() {
		return 0
	}
	return time.Duration(r.PeriodSeconds(spec)) * time.Second
}

// metricRow is the row of a metric that is known, because its alarm has passed the first guards.
func metricRow(m v1alpha1.Metric) MetricRow {
	row, err := LookupMetric(m)
	if err != nil { // nothing is decided for an unknown one; no value is at this threshold
		row.Label = string(m)
		row.trigger = func(v1alpha1.Spec) v1alpha1.Trigger {
			return v1alpha1.Trigger{Enabled: new(bool), ThresholdPercent: 101}
		}
		row.alarm = func(v1alpha1.Spec) v1alpha1.FlavorAlarm { return v1alpha1.FlavorAlarm{} }
	}
	return row
}

// helpedBy is the kind of change that helps against the alarm of a metric; empty for an unknown one.
func helpedBy(m v1alpha1.Metric) v1alpha1.ChangeKind { return metricRow(m).HelpedBy }
