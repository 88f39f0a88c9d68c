// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"math"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Past returns the measurements of all metrics since then, as averages over a period. It needs one request. dimension is
// that of the rules, as name:value; empty means the dimension of the instance. A series that the cloud rejects is
// missing in the result, as one without data is.
func (c *Cloud) Past(ctx context.Context, inst autopilot.Instance, dimension string, period time.Duration,
	since time.Time) (autopilot.Past, error) {
	of, err := series(inst, dimension)
	if err != nil {
		return autopilot.Past{}, err
	}
	var all []Series
	for _, m := range autopilot.MetricTable() {
		all = append(all, of(m.CloudEye))
		if m.InGB() {
			all = append(all, of(m.UsedGB), of(m.TotalGB))
		}
	}
	found, failed := readEach(all, func(series []Series) (map[Series][]autopilot.Point, error) {
		return c.queryPoints(ctx, series, int(period.Seconds()), since, c.now())
	})
	if len(failed) == len(all) {
		return autopilot.Past{}, failed[all[0]]
	}
	past := autopilot.Past{Percent: map[v1alpha1.Metric][]autopilot.Point{}}
	for _, m := range autopilot.MetricTable() {
		past.Percent[m.Metric] = found[of(m.CloudEye)]
		if m.InGB() {
			past.UsedGB, past.SizeGB = found[of(m.UsedGB)], found[of(m.TotalGB)]
		}
	}
	return past, nil
}

// Cloud Eye's names of the gauges (docs/cloud-facts.md#metric-data).
const (
	walMB         = "rds040_transaction_logs_usage"
	inactiveSlots = "inactive_logical_replication_slot"
	mbPerGB       = 1024.0 // as Cloud Eye counts
)

// WAL returns the newest values of the gauges of WAL. A gauge without data counts as 0.
func (c *Cloud) WAL(ctx context.Context, inst autopilot.Instance, dimension string) (autopilot.WAL, error) {
	of, err := series(inst, dimension)
	if err != nil {
		return autopilot.WAL{}, err
	}
	wal, slots := of(walMB), of(inactiveSlots)
	found, err := c.points.get(ctx, rawPeriod, []Series{wal, slots}, time.Time{})
	newest := func(s Series) float64 {
		points := c.credible(found[s], rawPeriod, math.MaxInt32)
		if len(points) == 0 {
			return 0
		}
		return points[len(points)-1].Value
	}
	return autopilot.WAL{GB: newest(wal) / mbPerGB, InactiveSlots: int(newest(slots))}, err
}
