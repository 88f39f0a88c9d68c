// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
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
				// A pointer, because the SDK's type reads a point without an average as zero.
				Average   *float64 `json:"average"`
				Timestamp int64    `json:"timestamp"`
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
			if p.Average != nil {
				points = append(points, autopilot.Point{Time: time.UnixMilli(p.Timestamp).UTC(), Value: *p.Average})
			}
		}
		if len(points) > 0 {
			slices.SortStableFunc(points, func(a, b autopilot.Point) int { return a.Time.Compare(b.Time) })
			found[s] = points
		}
	}
	return found, nil
}
