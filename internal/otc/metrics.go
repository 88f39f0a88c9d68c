// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// metricsPage is the most series that one call lists (CES api v1: querying_metrics.rst).
const metricsPage = 1000

// ListedSeries lists the series of one metric that Cloud Eye has data of at all, of all databases: the way to find which
// dimension an instance has. The SDK's call has a pager of its own, without a context.
func (c *Cloud) ListedSeries(ctx context.Context, metric string) (map[Series]bool, error) {
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
		// A page may begin at the marker or after it: one without anything new is the last.
		all := reply.Meta.Total != nil && len(listed) >= *reply.Meta.Total
		if all || len(reply.Metrics) < metricsPage || len(listed) == before || reply.Meta.Marker == "" {
			return listed, nil
		}
		query.Set("start", reply.Meta.Marker)
	}
}
