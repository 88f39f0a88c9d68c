// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/autopilot"
)

type meters struct {
	decisions     *prometheus.CounterVec
	alarmToPatch  prometheus.Histogram
	sweepDuration prometheus.Histogram
	lastSweep     prometheus.Gauge
	failed        *prometheus.CounterVec
}

func newMeters(c *Controller) *meters {
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
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rds_autopilot_rounds_failed_total",
			Help: "Checks of a database that failed, by cause. They are repeated. kubernetes: the API server did not answer or refused; panic: an error of the program, which also counts sweeps.",
		}, []string{"cause"}),
	}
	for _, cause := range []string{causeKubernetes, causeCloud, causePanic} {
		m.failed.WithLabelValues(cause)
	}
	// Each series starts at 0, because increase() ignores the first value of a series.
	for _, row := range autopilot.MetricTable() {
		metric := row.Metric
		m.decisions.WithLabelValues(string(metric), string(row.Action()), string(autopilot.ReasonAlarmInForce))
		for _, reason := range autopilot.WarningReasons() {
			m.decisions.WithLabelValues(string(metric), string(autopilot.ActionNone), string(reason))
		}
	}
	gauge := func(name, help string, labels prometheus.Labels, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "rds_autopilot_" + name, Help: help, ConstLabels: labels},
			value)
	}
	const idle = "For how long no check of this queue has begun or ended although databases wait for one. 0 if none waits."
	c.options.Reg.MustRegister(
		m.decisions, m.alarmToPatch, m.sweepDuration, m.lastSweep, m.failed,
		gauge("waiting_databases", "Databases that wait for a check, or are being checked.", nil, c.waiting),
		gauge("sweep_interval_seconds", "Time between two sweeps, as configured.", nil, c.options.Sweep.Seconds),
		gauge("queue_idle_seconds", idle, prometheus.Labels{"queue": "decide"},
			func() float64 { return c.idle(&c.deciding, (*queues).decideQueue) }),
		gauge("queue_idle_seconds", idle, prometheus.Labels{"queue": "arm"},
			func() float64 { return c.idle(&c.arming, (*queues).armQueue) }),
		newStatusCollector(c.options.Kube, c.options.Now),
	)
	return m
}
