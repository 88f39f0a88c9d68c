// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
)

const (
	// seriesKnownFor is how long a list of series is proof that an instance in it has data of its own.
	seriesKnownFor = 24 * time.Hour
	// seriesMissingFor is how old a list may be that says that an instance has no data of its own. Each sweep looks it up.
	seriesMissingFor = 5 * time.Minute
	// metricsPage is how many series one request lists at most (CES api v1: querying_metrics.rst).
	metricsPage = 1000
)

// Dimension returns the dimension of the primary node, as name:value, if Cloud Eye lists data of that node and none of
// the instance. Otherwise it returns the dimension of the instance. Only the list proves a dimension, because Cloud Eye
// accepts rules for resources that do not exist.
func (c *Cloud) Dimension(ctx context.Context, inst autopilot.Instance) (string, error) {
	ofInstance, ofNode, err := Dimensions(inst.Engine)
	if err != nil {
		return "", err
	}
	own := Series{Metric: seriesMetric(), Dimension: ofInstance, Value: inst.ID}
	node := Series{Metric: own.Metric, Dimension: ofNode, Value: inst.Primary}
	dimension := ofInstance + ":" + inst.ID
	if inst.Primary == "" {
		return dimension, nil
	}
	listed, err := c.series.Get(ctx, project{}, c.now().Add(-seriesKnownFor))
	if err == nil && !listed[own] {
		listed, err = c.series.Get(ctx, project{}, c.now().Add(-seriesMissingFor))
	}
	if err != nil {
		return "", fmt.Errorf("list the series of %s: %w", own.Metric, err)
	}
	if !listed[own] && listed[node] {
		dimension = ofNode + ":" + inst.Primary
	}
	return dimension, nil
}

// seriesMetric returns Cloud Eye's name of the metric whose series show which dimension of an instance has data.
func seriesMetric() string { return autopilot.MetricTable()[0].CloudEye }

// ListSeries lists all series of seriesMetric for which Cloud Eye has data, of all instances and nodes. The SDK's call
// is not used, because its pager takes no context.
func (c *Cloud) ListSeries(ctx context.Context) (map[Series]bool, error) {
	metric := seriesMetric()
	listed := map[Series]bool{}
	query := url.Values{"namespace": {MetricNamespace}, "metric_name": {metric}, "limit": {strconv.Itoa(metricsPage)}}
	for {
		var reply struct {
			Metrics []struct {
				Metric     string      `json:"metric_name"`
				Dimensions []dimension `json:"dimensions"`
			} `json:"metrics"`
			Meta struct {
				Marker string `json:"marker"`
				Total  *int   `json:"total"`
			} `json:"meta_data"`
		}
		if err := c.doRequest(ctx, opListMetrics, http.MethodGet, "metrics?"+query.Encode(), nil, &reply); err != nil {
			return nil, err
		}
		before := len(listed)
		for _, m := range reply.Metrics {
			if m.Metric == metric && len(m.Dimensions) == 1 {
				listed[Series{Metric: metric, Dimension: m.Dimensions[0].Name, Value: m.Dimensions[0].Value}] = true
			}
		}
		// A page may begin at the marker or after it, so a page without a new series is the last.
		all := reply.Meta.Total != nil && len(listed) >= *reply.Meta.Total
		if all || len(reply.Metrics) < metricsPage || len(listed) == before || reply.Meta.Marker == "" {
			return listed, nil
		}
		query.Set("start", reply.Meta.Marker)
	}
}

// Dimensions returns the names of the dimensions of an engine: the one whose value is the id of an instance (RDS umn:
// configuring_displayed_metrics.rst), and the one whose value is the id of a node (RDS api:
// rds_monitoring_metrics_description.rst). It returns an error for an unknown engine.
func Dimensions(engine string) (ofInstance, ofNode string, err error) {
	switch strings.ToLower(engine) {
	case "mysql":
		return "rds_cluster_id", "rds_instance_id", nil
	case "postgresql":
		return "postgresql_cluster_id", "postgresql_instance_id", nil
	case "sqlserver":
		return "rds_cluster_sqlserver_id", "rds_instance_sqlserver_id", nil
	}
	return "", "", fmt.Errorf("no such engine: %s", engine)
}
