// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/autopilot"
)

type meters struct {
	decisions     *prometheus.CounterVec
	alarmToPatch  prometheus.Histogram
	sweepDuration prometheus.Histogram
	lastSweep     prometheus.Gauge
	foreign       prometheus.Gauge
}

func newMeters(reg prometheus.Registerer, cache AutopilotCache, waiting func() float64, now func() time.Time) *meters {
	m := &meters{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rds_autopilot_decisions_total",
			Help: "Decision records, by metric, action and reason. Repetitions that are merged into a record do not count.",
		}, []string{"metric", "action", "reason"}),
		alarmToPatch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "rds_autopilot_alarm_to_patch_seconds",
			Help:    "Time from the alarm's own time to the patch of the Rds, for the first change of an alarm.",
			Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600},
		}),
		sweepDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "rds_autopilot_sweep_duration_seconds",
			Help:    "Time that a sweep takes to list the states of all alarm rules.",
			Buckets: prometheus.ExponentialBuckets(.05, 2, 12),
		}),
		lastSweep: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rds_autopilot_last_sweep_timestamp_seconds",
			Help: "Unix time at which the last sweep listed all alarm rules. 0 on a replica that has never led.",
		}),
		foreign: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rds_autopilot_foreign_objects",
			Help: "Topics and rules with our form of name that belong to another cluster or have no cluster id. They are not removed.",
		}),
	}
	for _, row := range autopilot.MetricTable() { // each series starts at 0, because increase() ignores the first value of a series
		metric := row.Metric
		m.decisions.WithLabelValues(string(metric), string(row.Action()), string(autopilot.ReasonAlarmInForce))
		for _, reason := range autopilot.WarningReasons() {
			m.decisions.WithLabelValues(string(metric), string(autopilot.ActionNone), string(reason))
		}
	}
	backlog := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rds_autopilot_waiting_databases", Help: "Databases that wait for a check, or are being checked.",
	}, waiting)
	reg.MustRegister(backlog, m.decisions, m.alarmToPatch, m.sweepDuration, m.lastSweep, m.foreign, newStatusCollector(cache, now))
	return m
}
