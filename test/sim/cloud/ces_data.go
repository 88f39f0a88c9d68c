// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of a batch query. CES api v1: querying_monitoring_data_of_multiple_metrics.rst.
const (
	maxBatchMetrics = 10
	maxBatchPoints  = 3000
)

// listMetrics lists the series that have data, which shows the dimension of an instance. CES api v1:
// querying_metrics.rst.
func (c *Cloud) listMetrics(q *call) reply {
	limit, ok := q.number("limit", 1000, 1, 1000)
	query := q.URL.Query()
	var dim *Dimension
	if text := query.Get("dim.0"); text != "" {
		k, v, found := strings.Cut(text, ",")
		dim, ok = &Dimension{k, v}, ok && found
	}
	if !ok {
		return cesError(http.StatusBadRequest, "", "limit or dim.0 is invalid")
	}
	found := map[string]fields{} // by marker
	for _, in := range c.instances {
		for _, s := range c.seriesOf(in) {
			_, seen := s.newestRaw(c.visible(c.sampled))
			if !seen || dim != nil && *dim != s.dim ||
				cmp.Or(query.Get("metric_name"), s.name) != s.name || cmp.Or(query.Get("namespace"), rdsNamespace) != rdsNamespace {
				continue
			}
			found[fmt.Sprintf("%s.%s.%s:%s", rdsNamespace, s.name, s.dim.Name, s.dim.Value)] = fields{
				"namespace": rdsNamespace, "metric_name": s.name, "unit": s.unit, "dimensions": []Dimension{s.dim},
			}
		}
	}
	start, out, marker := query.Get("start"), []fields{}, ""
	rows := slices.DeleteFunc(slices.Sorted(maps.Keys(found)), func(m string) bool { return m <= start })
	for _, m := range rows[:min(limit, len(rows))] {
		out, marker = append(out, found[m]), m
	}
	return jsonReply(http.StatusOK, fields{"metrics": out, "meta_data": fields{"count": len(out), "marker": marker, "total": len(found)}})
}

// datapoints returns the points whose period begins between from and to (milliseconds) and has ended. ok is false if
// the series is refused.
func (c *Cloud) datapoints(m Metric, period int, from, to int64) (rows []fields, unit string, ok bool) {
	out := []fields{}
	s := c.find(m)
	if s == nil {
		return out, "", true
	}
	fault, faulty := s.in.fault(m.MetricName)
	if fault.Refused {
		return nil, "", false
	}
	last := c.roundUp(to + 1)
	ahead := time.Duration(0)
	if c.settings.DatapointsAreLocal {
		ahead = localAhead
	}
	points := s.points(ticks(period), c.roundUp(from), last-1, c.visible(c.sampled))
	for _, p := range points {
		out = append(out, fields{average: p.value, "timestamp": c.tickTime(p.tick).Add(ahead).UnixMilli()})
	}
	if faulty {
		out = c.spoil(s, fault, points, out, ticks(period))
	}
	return out, s.unit, true
}

func (c *Cloud) batchMetricData(q *call) reply {
	var in struct {
		Metrics  []Metric `json:"metrics"`
		From, To int64
		Period   string
		Filter   string
	}
	if err := q.decode(&in); err != nil {
		return cesError(http.StatusBadRequest, "", "The body is malformed: %v", err)
	}
	period, err := strconv.Atoi(in.Period)
	switch {
	case err != nil || !validPeriod(period) || in.Filter != average || in.From >= in.To:
		return cesError(http.StatusBadRequest, "", "period, filter, from or to is invalid")
	case len(in.Metrics) == 0 || len(in.Metrics) > maxBatchMetrics:
		return cesError(http.StatusBadRequest, "", "1 to %d metrics are allowed", maxBatchMetrics)
	// Speed does not count, so that a query which the real cloud accepts is accepted here.
	case int64(len(in.Metrics))*(in.To-in.From)/(60_000*ticks(period)) > maxBatchPoints:
		return cesError(http.StatusBadRequest, "", "metrics × (to − from) / interval is above %d", maxBatchPoints)
	}
	out := []fields{}
	for _, m := range in.Metrics {
		if err := m.check(); err != nil {
			return cesError(http.StatusBadRequest, "", "%v", err)
		}
		points, unit, ok := c.datapoints(m, period, in.From, in.To)
		if !ok {
			return cesError(http.StatusBadRequest, "", "The metric %s of %s cannot be queried", m.MetricName, m.Dimensions[0].Value)
		}
		out = append(out, fields{
			"namespace": m.Namespace, "metric_name": m.MetricName, "dimensions": m.Dimensions, "datapoints": points, "unit": unit,
		})
	}
	return printBare(jsonReply(http.StatusOK, fields{"metrics": out}))
}
