// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// MetricNamespace is Cloud Eye's namespace of RDS (RDS api: rds_monitoring_metrics_description.rst).
	MetricNamespace = "SYS.RDS"
	// SeriesPerQuery is how many series one request reads (CES api v1: querying_monitoring_data_of_multiple_metrics.rst).
	SeriesPerQuery = 10
)

// Series is one metric of one instance or node.
type Series struct {
	Metric    string // such as rds048_disk_used_size
	Dimension string // such as rds_cluster_id
	Value     string // such as the instance's id
}

type dimension struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// queryPoints reads averages of at most SeriesPerQuery series, oldest first. The time of a point is the beginning of its
// period. period is in seconds; 1 means raw data. from should be one period early, because the cloud returns nothing for
// a part of a period. A series without data is missing in the result.
func (c *Cloud) queryPoints(ctx context.Context, series []Series, period int, from,
	to time.Time) (map[Series][]autopilot.Point, error) {
	type metric struct {
		Namespace  string      `json:"namespace"`
		Metric     string      `json:"metric_name"`
		Dimensions []dimension `json:"dimensions"`
	}
	body := struct {
		Metrics []metric `json:"metrics"`
		From    int64    `json:"from"`
		To      int64    `json:"to"`
		Period  string   `json:"period"`
		Filter  string   `json:"filter"`
	}{From: from.UnixMilli(), To: to.UnixMilli(), Period: strconv.Itoa(period), Filter: "average"}
	for _, s := range series {
		body.Metrics = append(body.Metrics, metric{MetricNamespace, s.Metric, []dimension{{s.Dimension, s.Value}}})
	}
	var reply struct {
		Metrics []struct {
			Metric     string      `json:"metric_name"`
			Dimensions []dimension `json:"dimensions"`
			Datapoints []struct {
				// A text or a missing average must hide no other point. The SDK's type reads a missing one as zero.
				Average   any   `json:"average"`
				Timestamp int64 `json:"timestamp"`
			} `json:"datapoints"`
		} `json:"metrics"`
	}
	if err := c.doRequest(ctx, opQueryData, http.MethodPost, "batch-query-metric-data", body, &reply); err != nil {
		return nil, err
	}
	found := map[Series][]autopilot.Point{}
	for _, m := range reply.Metrics {
		if len(m.Dimensions) != 1 {
			continue
		}
		s := Series{Metric: m.Metric, Dimension: m.Dimensions[0].Name, Value: m.Dimensions[0].Value}
		if !slices.Contains(series, s) {
			continue
		}
		var points []autopilot.Point
		for _, p := range m.Datapoints {
			if value, isNumber := p.Average.(float64); isNumber {
				points = append(points, autopilot.Point{Time: time.UnixMilli(p.Timestamp).UTC(), Value: value})
			}
		}
		if len(points) > 0 {
			slices.SortStableFunc(points, func(a, b autopilot.Point) int { return a.Time.Compare(b.Time) })
			found[s] = points
		}
	}
	return found, nil
}

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
	found := c.points.get(ctx, rawPeriod, []Series{wal, slots}, time.Time{})
	newest := func(s Series) (value float64) {
		for _, p := range found[s].Points {
			value = p.Value
		}
		return min(max(value, 0), math.MaxInt32)
	}
	err = errors.Join(found[wal].Err, found[slots].Err)
	return autopilot.WAL{GB: newest(wal) / mbPerGB, InactiveSlots: int(newest(slots))}, err
}
