// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// metricsPage is how many series one request lists at most (CES api v1: querying_metrics.rst).
const metricsPage = 1000

// ListedSeries returns all series of one metric for which Cloud Eye has data, of all instances and nodes. They show
// which dimension an instance has. The SDK's call is not used, because its pager takes no context.
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
		// A page may begin at the marker or after it, so a page without a new series is the last.
		all := reply.Meta.Total != nil && len(listed) >= *reply.Meta.Total
		if all || len(reply.Metrics) < metricsPage || len(listed) == before || reply.Meta.Marker == "" {
			return listed, nil
		}
		query.Set("start", reply.Meta.Marker)
	}
}
