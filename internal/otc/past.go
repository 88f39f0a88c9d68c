// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Past returns the measurements of the wanted metrics since then, as averages over a period. It needs one request.
func (c *Cloud) Past(ctx context.Context, inst autopilot.Instance, wanted []autopilot.EvidenceRequest,
	period time.Duration, since time.Time) (autopilot.Past, error) {
	past := autopilot.Past{Percent: map[v1alpha1.Metric][]autopilot.Point{}}
	var all []Series
	keep := map[Series]func([]autopilot.Point){}
	read := func(s Series, as func([]autopilot.Point)) {
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
		as(found[s])
	}
	return past, nil
}

// datapoints reads series of one instance. A series that the cloud rejects is missing in the result, as one without
// data is. It returns an error if no series could be read.
func (c *Cloud) datapoints(ctx context.Context, all []Series, period time.Duration, from,
	to time.Time) (map[Series][]autopilot.Point, error) {
	found, failed := readEach(all, func(series []Series) (map[Series][]autopilot.Point, error) {
		return c.queryPoints(ctx, series, int(period.Seconds()), from, to)
	})
	for _, err := range failed {
		if len(failed) == len(all) {
			return nil, err
		}
	}
	return found, nil
}
