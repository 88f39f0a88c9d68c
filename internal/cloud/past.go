// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// seriesPerFortnight is how many series of 14 days one request reads: each has 338 values, and a request returns 3,000
// at most (CES api v1: querying_monitoring_data_of_multiple_metrics.rst).
const seriesPerFortnight = 8

// UsedSpace returns hourly averages of the used space in GB of autopilot.CapSpan. Calls of about the same time share
// requests.
func (c *Cloud) UsedSpace(ctx context.Context, inst autopilot.Instance, dimension string) ([]autopilot.Point, error) {
	metric, err := autopilot.LookupMetric(v1alpha1.MetricStorage)
	if err != nil {
		return nil, err
	}
	of, err := series(inst, controller.EvidenceRequest{Dimension: dimension})
	if err != nil {
		return nil, err
	}
	s := of(metric.UsedGB)
	found, err := c.fortnight.get(ctx, int(autopilot.CapPeriod.Seconds()), []otc.Series{s}, time.Time{})
	return pointsOf(found[s]), err
}

func (c *Cloud) readFortnight(ctx context.Context, series []otc.Series,
	period int) (map[otc.Series][]otc.Datapoint, error) {
	to := c.now()
	return c.api.Datapoints(ctx, series, period, to.Add(-autopilot.CapSpan-autopilot.CapPeriod), to.Add(time.Minute))
}

// Past returns the measurements of the wanted metrics since then, as averages over a period. It needs one request.
func (c *Cloud) Past(ctx context.Context, inst autopilot.Instance, wanted []controller.EvidenceRequest,
	period time.Duration, since time.Time) (autopilot.Past, error) {
	past := autopilot.Past{Percent: map[v1alpha1.Metric][]autopilot.Point{}}
	var all []otc.Series
	keep := map[otc.Series]func([]autopilot.Point){}
	read := func(s otc.Series, as func([]autopilot.Point)) {
		all = append(all, s)
		keep[s] = as
	}
	for _, w := range wanted {
		of, err := series(inst, w)
		if err != nil {
			return past, err
		}
		metric, err := autopilot.LookupMetric(w.Metric)
		if err != nil {
			return past, err
		}
		read(of(metric.CloudEye), func(p []autopilot.Point) { past.Percent[metric.Metric] = p })
		if metric.InGB() {
			read(of(metric.UsedGB), func(p []autopilot.Point) { past.UsedGB = p })
			read(of(metric.TotalGB), func(p []autopilot.Point) { past.SizeGB = p })
		}
	}
	found, err := c.datapoints(ctx, all, period, since, c.now())
	if err != nil {
		return past, err
	}
	for s, as := range keep {
		as(pointsOf(found[s]))
	}
	return past, nil
}

// Series returns the averages of up to ten metrics of one instance, in one request.
func (c *Cloud) Series(ctx context.Context, inst autopilot.Instance,
	w controller.SeriesRequest) (autopilot.Series, error) {
	of, err := series(inst, controller.EvidenceRequest{Dimension: w.Dimension})
	if err != nil {
		return nil, err
	}
	var all []otc.Series
	for _, m := range w.Metrics {
		all = append(all, of(m))
	}
	found, err := c.datapoints(ctx, all, w.Period, w.Since, c.now().Add(time.Minute))
	if err != nil {
		return nil, err
	}
	result := make(autopilot.Series, len(found))
	for s, points := range found {
		result[s.Metric] = pointsOf(points)
	}
	return result, nil
}

// datapoints reads series of one instance. A series that the cloud rejects is missing in the result, as one without
// data is. It returns an error if no series could be read.
func (c *Cloud) datapoints(ctx context.Context, all []otc.Series, period time.Duration, from,
	to time.Time) (map[otc.Series][]otc.Datapoint, error) {
	found, failed := readEach(all, func(series []otc.Series) (map[otc.Series][]otc.Datapoint, error) {
		return c.api.Datapoints(ctx, series, int(period.Seconds()), from, to)
	})
	for _, err := range failed {
		if len(failed) == len(all) {
			return nil, err
		}
	}
	return found, nil
}
