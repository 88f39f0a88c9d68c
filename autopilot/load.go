// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// loadDelay is how late the data of Cloud Eye may be: the load after a change is read that much later than its hour.
const loadDelay = 10 * time.Minute

// LoadOf returns the average load of the hour before a time, from the series of LoadMetrics. It returns nil if none of
// its values is known.
func LoadOf(s Series, now time.Time) *v1alpha1.Load {
	mean := func(metric string) string {
		r, ok := readingOf(s[metric], metric, now)
		if !ok {
			return ""
		}
		return strconv.FormatFloat(r.mean, 'f', 1, 64)
	}
	l := v1alpha1.Load{
		CPUPercent:         mean(metricRow(v1alpha1.MetricCPU).CloudEye),
		MemoryPercent:      mean(metricRow(v1alpha1.MetricMemory).CloudEye),
		ConnectionsPercent: cmp.Or(mean(postgresSessions), mean(mysqlSessions)),
	}
	if l == (v1alpha1.Load{}) {
		return nil
	}
	return &l
}

// NeedsLoadAfter reports whether the first hour with our last flavor is over, and its load is not recorded. After a
// second hour it is not read any more.
func (c Case) NeedsLoadAfter() bool {
	i := c.lastOwnFlavor()
	if i < 0 || c.Instance == nil {
		return false
	}
	ch := c.Status.Changes[i]
	since := c.Now.Sub(ch.CompletionTime.Time)
	return ch.Before != nil && ch.After == nil && since >= LoadSpan+loadDelay && since < 2*LoadSpan
}

// RecordLoadAfter stores the load after our last flavor.
func (c *Case) RecordLoadAfter(s Series) {
	i := c.lastOwnFlavor()
	if i < 0 {
		return
	}
	c.Status.Changes = slices.Clone(c.Status.Changes)
	c.Status.Changes[i].After = LoadOf(s, c.Now)
}

// lastOwnFlavor returns the index of our last flavor in status.changes if it was completed, or -1.
func (c Case) lastOwnFlavor() int {
	i := slices.IndexFunc(c.Status.Changes, func(ch v1alpha1.Change) bool { return ch.Kind == v1alpha1.KindFlavor })
	if i < 0 || c.Status.Changes[i].By != v1alpha1.ByAutopilot ||
		c.Status.Changes[i].Outcome != v1alpha1.OutcomeCompleted {
		return -1
	}
	return i
}

// percentAfter returns the recorded load of a metric after a change. ok is false if it is not known.
func percentAfter(ch v1alpha1.Change, m v1alpha1.Metric) (percent float64, ok bool) {
	if ch.After == nil {
		return 0, false
	}
	text := ch.After.CPUPercent
	if m == v1alpha1.MetricMemory {
		text = ch.After.MemoryPercent
	}
	percent, err := strconv.ParseFloat(text, 64)
	return percent, err == nil
}
