// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/otc"
)

const (
	// seriesKnownFor is how long a list of series is proof that an instance in it has data of its own.
	seriesKnownFor = 24 * time.Hour
	// seriesMissingFor is how old a list may be that says that an instance has no data of its own. Such an instance is
	// looked up in each sweep.
	seriesMissingFor = 5 * time.Minute
)

// Dimension returns the dimension of the primary node, as name:value, if Cloud Eye lists data of that node and none of
// the instance. Otherwise it returns the dimension of the instance. Only the list proves a dimension, because Cloud Eye
// accepts rules for resources that do not exist.
func (c *Cloud) Dimension(ctx context.Context, inst autopilot.Instance) (string, error) {
	ofInstance, err1 := alarms.InstanceDimension(inst.Engine)
	ofNode, err2 := alarms.NodeDimension(inst.Engine)
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	own := otc.Series{Metric: seriesMetric(), Dimension: ofInstance, Value: inst.ID}
	node := otc.Series{Metric: own.Metric, Dimension: ofNode, Value: inst.Primary}
	if node.Value == "" {
		return own.Dimension + ":" + own.Value, nil
	}
	listed, err := c.series.Get(ctx, project{}, c.now().Add(-seriesKnownFor))
	if err == nil && !listed[own] {
		listed, err = c.series.Get(ctx, project{}, c.now().Add(-seriesMissingFor))
	}
	if err != nil {
		return "", fmt.Errorf("list the series of %s: %w", own.Metric, err)
	}
	if !listed[own] && listed[node] {
		return node.Dimension + ":" + node.Value, nil
	}
	return own.Dimension + ":" + own.Value, nil
}

// seriesMetric returns Cloud Eye's name of the metric whose series show which dimension of an instance has data.
func seriesMetric() string { return autopilot.MetricTable()[0].CloudEye }
