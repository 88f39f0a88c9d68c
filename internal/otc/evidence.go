// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
)

const (
	// rawPeriod is the period, in Cloud Eye's API, of data that is not aggregated.
	rawPeriod = 1
	// newestWithin is how old the newest datapoint may be. Metrics are up to 10 minutes late
	// (docs/cloud-facts.md#metrics).
	newestWithin = 30 * time.Minute
)

// Evidence returns the newest datapoint of a metric; the zero value if there is none. The evidence for storage is the
// used space in GB, from raw data. If Cloud Eye has no used space, it is the percentage of the size at that datapoint.
func (c *Cloud) Evidence(ctx context.Context, inst autopilot.Instance,
	w autopilot.EvidenceRequest) (autopilot.Evidence, error) {
	metric, err := autopilot.LookupMetric(w.Metric)
	if err != nil {
		return autopilot.Evidence{}, err
	}
	of, err := series(inst, w.Dimension)
	if err != nil {
		return autopilot.Evidence{}, err
	}
	if metric.InGB() {
		return c.usedSpaceOfAny(ctx, metric, inst, w)
	}
	s := of(metric.CloudEye)
	points, err := c.points.get(ctx, w.PeriodSeconds, []Series{s}, w.NotBefore)
	if credible := c.credible(points[s], w.PeriodSeconds, metric.MostPercent()); err == nil && len(credible) > 0 {
		newest := credible[len(credible)-1]
		return autopilot.Evidence{Time: newest.Time, Percent: newest.Value}, nil
	}
	return autopilot.Evidence{}, err
}

// usedSpaceOfAny returns the used space on the first dimension that has data: the rule's, the instance's, or the
// primary node's. All have the same volume. The rule's dimension may have none, or there may be no rule.
func (c *Cloud) usedSpaceOfAny(ctx context.Context, metric autopilot.MetricRow, inst autopilot.Instance,
	w autopilot.EvidenceRequest) (autopilot.Evidence, error) {
	_, ofNode, err := Dimensions(inst.Engine)
	if err != nil {
		return autopilot.Evidence{}, err
	}
	tried := map[Series]bool{}
	var unread error
	for _, dimension := range []string{w.Dimension, "", ofNode + ":" + inst.Primary} {
		of, err := series(inst, dimension)
		if err != nil {
			return autopilot.Evidence{}, err
		}
		if s := of(metric.UsedGB); !tried[s] && s.Value != "" {
			tried[s] = true
			e, err := c.usedSpace(ctx, metric, of, inst.VolumeGB, w)
			if e.Present() || isOutage(err) {
				return e, err
			}
			unread = errors.Join(unread, err)
		}
	}
	return autopilot.Evidence{}, unread
}

// series returns a function that names the series of a metric on a dimension, as name:value; empty means the dimension
// of the instance.
func series(inst autopilot.Instance, dimension string) (func(metric string) Series, error) {
	name, value, ok := strings.Cut(dimension, ":")
	if !ok {
		var err error
		if name, _, err = Dimensions(inst.Engine); err != nil {
			return nil, err
		}
		value = inst.ID
	}
	return func(metric string) Series { return Series{Metric: metric, Dimension: name, Value: value} }, nil
}

// usedSpace returns the newest used space on one dimension. A series that cannot be read, or that has nothing that can be
// true, does not hide the percentage and the size.
func (c *Cloud) usedSpace(ctx context.Context, metric autopilot.MetricRow, of func(string) Series, volumeGB int,
	w autopilot.EvidenceRequest) (autopilot.Evidence, error) {
	points, unread := c.points.get(ctx, rawPeriod, []Series{of(metric.UsedGB)}, w.NotBefore)
	if isOutage(unread) {
		return autopilot.Evidence{}, unread
	}
	most := float64(volumeGB)
	if used := c.credible(points[of(metric.UsedGB)], rawPeriod, most); len(used) > 0 {
		newest := used[len(used)-1]
		return autopilot.Evidence{Time: newest.Time, UsedGB: newest.Value}, nil
	}
	points, err := c.points.get(ctx, rawPeriod, []Series{of(metric.CloudEye), of(metric.TotalGB)}, w.NotBefore)
	if err != nil {
		return autopilot.Evidence{}, err
	}
	totals := c.credible(points[of(metric.TotalGB)], rawPeriod, most)
	percents := c.credible(points[of(metric.CloudEye)], rawPeriod, metric.MostPercent())
	for _, percent := range slices.Backward(percents) { // the two series may have been read at different times
		i := slices.IndexFunc(totals, func(total autopilot.Point) bool { return total.Time.Equal(percent.Time) })
		if i >= 0 {
			return autopilot.Evidence{Time: percent.Time, UsedGB: percent.Value / 100 * totals[i].Value}, nil
		}
	}
	return autopilot.Evidence{}, unread
}

// credible returns the datapoints of a period in seconds that may be evidence, oldest first: those that are recent and
// can be true.
func (c *Cloud) credible(points []autopilot.Point, period int, most float64) []autopilot.Point {
	return slices.DeleteFunc(slices.Clone(points), func(p autopilot.Point) bool {
		return c.now().Sub(p.Time) > newestWithin+2*time.Duration(period)*time.Second ||
			!p.IsCredible(most, c.now())
	})
}

// readPoints reads the datapoints of newestWithin. It reads two periods more, because the cloud returns nothing for a
// part of a period.
func (c *Cloud) readPoints(ctx context.Context, series []Series,
	period int) (map[Series][]autopilot.Point, error) {
	to := c.now()
	from := to.Add(-newestWithin - 2*time.Duration(period)*time.Second)
	return c.queryPoints(ctx, series, period, from, to.Add(time.Minute))
}
