// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"math"
	"time"
)

const rdsNamespace = "SYS.RDS"

// insufficientAfter is in raw intervals: three hours. CES umn: when_will_an_insufficient_data_alarm_be_triggered.rst.
const insufficientAfter = 180

// standbyShare is the part of the primary's CPU and memory that a standby shows. Its storage is the same.
const standbyShare = 0.25

type metricInfo struct {
	name, title, unit string
	value             func(sample) float64
	load              bool // differs between primary and standby
}

// rdsMetrics returns the metrics of all engines. RDS api: rds_monitoring_metrics_description.rst.
func rdsMetrics() []metricInfo {
	return []metricInfo{
		{"rds001_cpu_util", "CPU Usage", "%", func(s sample) float64 { return s.cpuPct }, true},
		{"rds002_mem_util", "Memory Usage", "%", func(s sample) float64 { return s.memPct }, true},
		{"rds039_disk_util", "Storage Space Usage", "%", func(s sample) float64 { return 100 * s.usedGB / s.totalGB }, false},
		{"rds047_disk_total_size", "Total Storage Space", "GB", func(s sample) float64 { return s.totalGB }, false},
		{"rds048_disk_used_size", "Used Storage Space", "GB", func(s sample) float64 { return s.usedGB }, false},
	}
}

// engineMetric returns a metric that only some engines have. Its unit is not simulated.
func engineMetric(name string) metricInfo {
	return metricInfo{name, name, "", func(s sample) float64 {
		value, ok := s.metrics[name]
		if !ok {
			return math.NaN()
		}
		return value
	}, false}
}

// dimensionKeys returns the names of the dimensions of an engine. RDS umn: configuring_displayed_metrics.rst of each
// engine.
func dimensionKeys(engine string) (instanceLevel, nodeLevel string) {
	switch engine {
	case "MySQL":
		return "rds_cluster_id", "rds_instance_id"
	case "PostgreSQL":
		return "postgresql_cluster_id", "postgresql_instance_id"
	}
	return "rds_cluster_sqlserver_id", "rds_instance_sqlserver_id"
}

// series is one metric of one instance or node.
type series struct {
	metricInfo
	in       *instance
	dim      Dimension
	resource string // name of the instance or node
	share    float64
}

// seriesOf returns all series of an instance. Those of the instance level have the values of the primary.
func (c *Cloud) seriesOf(in *instance) []series {
	instanceKey, nodeKey := dimensionKeys(in.Engine)
	var out []series
	metrics := rdsMetrics()
	for name := range in.Workload.Metrics {
		metrics = append(metrics, engineMetric(name))
	}
	for _, m := range metrics {
		if c.settings.NoUsedSpace && m.name == "rds048_disk_used_size" {
			continue
		}
		if percent := m.value; c.settings.MetricsAreFractions && m.unit == "%" {
			m.value = func(s sample) float64 { return percent(s) / 100 }
		}
		if !c.settings.NoInstanceLevelData {
			share := 1.0
			if c.settings.InstanceShowsStandby && m.load && len(in.Nodes) > 1 {
				share = standbyShare
			}
			out = append(out, series{m, in, Dimension{instanceKey, in.ID}, in.Name, share})
		}
		for _, n := range in.Nodes {
			share := 1.0
			if n.Role == "slave" && m.load {
				share = standbyShare
			}
			out = append(out, series{m, in, Dimension{nodeKey, n.ID}, n.Name, share})
		}
	}
	return out
}

// find returns nil if the metric never has data, such as with a wrong dimension.
func (c *Cloud) find(m Metric) *series {
	if m.Namespace != rdsNamespace || len(m.Dimensions) != 1 {
		return nil
	}
	for _, in := range c.instances {
		if !in.has(m.Dimensions[0].Value) {
			continue
		}
		for _, s := range c.seriesOf(in) {
			if s.name == m.MetricName && s.dim == m.Dimensions[0] {
				return &s
			}
		}
	}
	return nil
}

func (in *instance) has(id string) bool {
	if in.ID == id {
		return true
	}
	for _, n := range in.Nodes {
		if n.ID == id {
			return true
		}
	}
	return false
}

// point is a raw datapoint, or that of a period. Its tick is the beginning of the period.
type point struct {
	tick  int64
	value float64
}

// visible returns the first tick whose raw data is not visible at tick k. The data of a minute is visible when it has
// ended.
func (c *Cloud) visible(k int64) int64 {
	return k - int64(math.Ceil(c.settings.MetricDelay.Minutes()))
}

// ticks returns the length of a period in raw intervals.
func ticks(period int) int64 {
	if period == 1 {
		return 1
	}
	return int64(period) / 60
}

// newestRaw returns the tick of the newest raw datapoint before end.
func (s *series) newestRaw(end int64) (int64, bool) {
	if len(s.in.samples) == 0 {
		return 0, false
	}
	first, last := s.in.samples[0].tick, s.in.samples[len(s.in.samples)-1].tick
	newest := min(last, end-1)
	return newest, newest >= first
}

// points returns the datapoints of periods of n ticks that begin from from to to, and have ended before end.
func (s *series) points(n, from, to, end int64) []point {
	if len(s.in.samples) == 0 {
		return nil
	}
	first := s.in.samples[0].tick
	from = max(from, first/n*n)
	var out []point
	for w := (from + n - 1) / n * n; w <= to && w+n <= end; w += n {
		lo, hi := max(w-first, 0), min(w+n-first, int64(len(s.in.samples)))
		if lo >= hi {
			continue
		}
		var values []float64
		for _, raw := range s.in.samples[lo:hi] {
			if v := s.value(raw) * s.share; !math.IsNaN(v) {
				values = append(values, v)
			}
		}
		if len(values) > 0 {
			out = append(out, point{w, mean(values)})
		}
	}
	return out
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// evaluate sets the state of a rule at tick k. It notifies of a change, and of an alarm again after each
// suppress_duration.
func (c *Cloud) evaluate(r *rule, k int64) {
	if !r.Enabled || r.Condition.Filter != average || c.settings.RawRulesSleep && r.Condition.Period == 1 {
		return
	}
	at := c.tickTime(k)
	cond, end, n := r.Condition, c.visible(k), ticks(r.Condition.Period)
	s := c.find(r.Metric)
	if s != nil {
		if newest, ok := s.newestRaw(end); ok {
			r.newest = max(r.newest, newest)
		}
	}
	if end-1-r.newest >= insufficientAfter {
		r.set(StateInsufficientData, at)
		return
	}
	var points []point
	if s != nil {
		last := end/n*n - n // the newest period that has ended
		points = s.points(n, last-int64(cond.Count-1)*n, last, end)
	}
	met, newestMet := 0, false
	for _, p := range points {
		newestMet = compare(cond.ComparisonOperator)(p.value, cond.Value)
		if newestMet {
			met++
		}
	}
	switch {
	case len(points) == 0: // keeps the state
	case met == cond.Count && r.State != StateAlarm:
		r.set(StateAlarm, at)
		c.notify(r, s, points, k, false)
		return
	case !newestMet && r.State == StateAlarm:
		r.set(StateOK, at)
		c.notify(r, s, points[len(points)-1:], k, false)
	case r.State == StateInsufficientData && (!newestMet || len(points) == cond.Count):
		r.set(StateOK, at)
	}
	if r.State == StateAlarm && cond.SuppressDuration > 0 && k-r.notified >= int64(cond.SuppressDuration/60) && len(points) > 0 {
		c.notify(r, s, points, k, true)
	}
}

// roundUp returns the first tick at or after a time in milliseconds.
func (c *Cloud) roundUp(ms int64) int64 {
	t := time.UnixMilli(ms)
	k := c.tickAt(t)
	if c.tickTime(k).UnixMilli() < ms {
		k++
	}
	return k
}
