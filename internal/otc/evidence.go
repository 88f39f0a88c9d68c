// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// rawPeriod is the period, in Cloud Eye's API, of data that is not aggregated.
const rawPeriod = 1

// Points returns the newest datapoints of metrics, each of the first dimension that has data: the rule's, the
// instance's or the primary node's. The rule's dimension may have none, or there may be no rule.
func (c *Cloud) Points(ctx context.Context, inst autopilot.Instance, w autopilot.EvidenceRequest) autopilot.Readings {
	readings, unread := autopilot.Readings{}, w.Names
	ofInstance, ofNode, err := Dimensions(inst.Engine)
	if err != nil {
		return autopilot.Readings{w.Names[0]: {Err: err}}
	}
	dimensions := []string{w.Dimension, ofInstance + ":" + inst.ID, ofNode + ":" + inst.Primary}
	for i, dimension := range dimensions {
		name, value, _ := strings.Cut(dimension, ":")
		if value == "" || slices.Contains(dimensions[:i], dimension) || len(unread) == 0 {
			continue
		}
		var all []Series
		for _, metric := range unread {
			all = append(all, Series{Metric: metric, Dimension: name, Value: value})
		}
		unread = nil
		for s, r := range c.points.get(ctx, w.PeriodSeconds, all, w.NotBefore) {
			switch r.Err = cmp.Or(readings[s.Metric].Err, r.Err); {
			case isOutage(r.Err):
				r.Err = fmt.Errorf("%w: %w", autopilot.ErrOutage, r.Err)
			case len(r.Points) == 0:
				unread = append(unread, s.Metric)
			}
			readings[s.Metric] = r
		}
	}
	return readings
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

// readPoints reads the datapoints that may be evidence. It reads two periods more, because the cloud returns nothing
// for a part of a period.
func (c *Cloud) readPoints(ctx context.Context, series []Series,
	period int) (map[Series][]autopilot.Point, error) {
	to := c.now()
	from := to.Add(-autopilot.EvidenceAge - 2*time.Duration(period)*time.Second)
	return c.queryPoints(ctx, series, period, from, to.Add(time.Minute))
}
