// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
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

// gigabyte converts a GB of the cloud to bytes. 10^9 keeps the digits that the cloud shows.
const gigabyte = 1e9

// notYet is the reason label in place of an unknown reason.
const notYet = "NotYet"

// notReadyAfter is how long the condition Ready may be False before the metric counts the database. Within an hour most
// problems are repaired, or other metrics show them.
const notReadyAfter = time.Hour

// statusCollector counts the cached RdsAutopilots at each scrape. Every replica reports the same numbers, not only
// the leader.
type statusCollector struct {
	kube Kubernetes
	now  func() time.Time

	autopilots, notReady, held, confirmed, conditions, readOnly, storage *prometheus.Desc
}

func newStatusCollector(kube Kubernetes, now func() time.Time) statusCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("rds_autopilot_"+name, help, labels, nil)
	}
	return statusCollector{
		kube: kube, now: now,
		notReady:   desc("not_ready", "RdsAutopilots whose condition Ready has been False for an hour or more, by its reason now.", "reason"),
		held:       desc("held_changes", "Changes that an alarm has needed for 15 minutes or more and that are not made, by kind and by the reason that prevents them. ChangePending and AlarmInForce: in progress for an hour or more.", "kind", "reason"),
		autopilots: desc("autopilots", "RdsAutopilots, by whether an alarm would reach the service.", "armed"),
		readOnly:   desc("read_only", "RdsAutopilots whose database is read-only, by its used space or because it is in STORAGE FULL, without those that are off or have no instance."),
		storage:    desc("storage_bytes", "Storage of all databases with a known instance. volume: size at their last check; cap: what their policies allow. A GB of the cloud counts as 10^9.", "kind"),
		confirmed:  desc("subscription_confirmed", "1 if the subscription of the public URL is confirmed, so that alarms reach the service, or if no database has alarm rules; else 0."),
		conditions: desc("conditions", "RdsAutopilots with that condition True. Armed is in rds_autopilot_autopilots.",
			"type"),
	}
}

func (c statusCollector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

func (c statusCollector) Collect(ch chan<- prometheus.Metric) {
	now := c.now()
	armed := map[string]int{"true": 0, "false": 0}
	notReady := map[string]int{notYet: 0, autopilot.ReadFailed: 0}
	for _, reason := range autopilot.NotArmedReasons() {
		notReady[reason] = 0
	}
	held := map[v1alpha1.ChangeKind]map[string]int{v1alpha1.KindVolume: {notYet: 0}, v1alpha1.KindFlavor: {notYet: 0}}
	for _, reason := range record.HeldReasons() {
		held[v1alpha1.KindVolume][string(reason)], held[v1alpha1.KindFlavor][string(reason)] = 0, 0
	}
	conditions := map[string]int{v1alpha1.ConditionProgressing: 0, v1alpha1.ConditionLimited: 0,
		v1alpha1.ConditionContested: 0}
	readOnly, volumeGB, capGB, isOn := 0, 0, 0, false
	managed := map[string]bool{} // by the id of the instance
	c.kube.EachAutopilot(func(a *v1alpha1.RdsAutopilot) {
		if a.Status.Instance != nil && watched(a) {
			managed[a.Status.Instance.ID] = true
		}
	})
	c.kube.EachAutopilot(func(a *v1alpha1.RdsAutopilot) {
		s, isWatched := &a.Status, watched(a)
		if reasonOf(a) == string(autopilot.ReasonInstanceClaimed) { // perhaps by an object that does not exist
			isWatched = s.Instance != nil && !managed[s.Instance.ID]
		}
		isOn = isOn || len(s.Alarms.Rules) > 0
		if s.ReadOnly != nil && isWatched {
			readOnly++
		}
		if s.Instance != nil && s.Instance.VolumeGB > 0 && isWatched {
			volumeGB += int(s.Instance.VolumeGB)
			capGB += max(autopilot.MaxGB(a.Spec, s.Baseline, int(s.Instance.VolumeGB)),
				int(s.Instance.VolumeGB)) // a volume above its cap counts as its own cap
		}
		armed[strconv.FormatBool(meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionArmed))]++
		ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
		if ready != nil && ready.Status == metav1.ConditionFalse && now.Sub(ready.LastTransitionTime.Time) >= notReadyAfter {
			notReady[known(notReady, ready.Reason)]++
		}
		for _, h := range record.HeldTooLong(s.Held, now) {
			if reasons := held[h.Kind]; reasons != nil && isWatched {
				reasons[known(reasons, h.Reason)]++
			}
		}
		for kind := range conditions {
			if meta.IsStatusConditionTrue(s.Conditions, kind) {
				conditions[kind]++
			}
		}
	})
	for desc, counts := range map[*prometheus.Desc]map[string]int{
		c.autopilots: armed, c.notReady: notReady, c.conditions: conditions,
	} {
		for label, n := range counts {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), label)
		}
	}
	confirmed := 0.0
	if c.kube.Topic().State == v1alpha1.SubscriptionConfirmed || !isOn {
		confirmed = 1
	}
	ch <- prometheus.MustNewConstMetric(c.confirmed, prometheus.GaugeValue, confirmed)
	ch <- prometheus.MustNewConstMetric(c.readOnly, prometheus.GaugeValue, float64(readOnly))
	ch <- prometheus.MustNewConstMetric(c.storage, prometheus.GaugeValue, float64(volumeGB)*gigabyte, "volume")
	ch <- prometheus.MustNewConstMetric(c.storage, prometheus.GaugeValue, float64(capGB)*gigabyte, "cap")
	for kind, reasons := range held {
		for reason, n := range reasons {
			ch <- prometheus.MustNewConstMetric(c.held, prometheus.GaugeValue, float64(n), string(kind), reason)
		}
	}
}

func reasonOf(a *v1alpha1.RdsAutopilot) string {
	unset := &metav1.Condition{Reason: notYet}
	return cmp.Or(meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionArmed), unset).Reason
}

// watched reports whether status.instance is kept up to date. If autopilot is off or the instance is gone, it is the
// last one seen. If the instance is claimed, the other object reports it.
func watched(a *v1alpha1.RdsAutopilot) bool {
	reason := reasonOf(a)
	return reason != string(autopilot.ReasonNotEnabled) && reason != string(autopilot.ReasonInstanceUnknown) &&
		reason != string(autopilot.ReasonInstanceClaimed)
}

// known returns notYet for an unknown reason, because label values must come from a closed set and another version
// may have written the status.
func known(set map[string]int, reason string) string {
	if _, ok := set[reason]; ok {
		return reason
	}
	return notYet
}
