// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// dataExpectedAfter is 30 minutes because Cloud Eye may need that long to show the first data of a new instance.
const dataExpectedAfter = 30 * time.Minute

// dimension returns the dimension of the rules, as name:value. An empty result is the instance's own dimension.
// Otherwise it is that of the primary node, because only that has the data. dimension asks Cloud Eye after a failover,
// and 30 minutes after ACTIVE whatever state the rules have, because a rule without data may be in ok for hours.
func (r *round) dimension(ctx context.Context, inst autopilot.Instance) string {
	seen := r.rap.Status.Instance
	if seen != nil && seen.ID != inst.ID {
		return "" // the recorded rules watch another instance
	}
	onNode := ""
	for _, rule := range r.rap.Status.Alarms.Rules {
		if _, value, _ := strings.Cut(rule.Dimension, ":"); value != inst.ID && value != "" {
			onNode = rule.Dimension
		}
	}
	due := inst.Status == autopilot.StatusStorageFull || // it must have been ACTIVE before
		seen != nil && seen.ActiveSince != nil && r.now.Sub(seen.ActiveSince.Time) >= dataExpectedAfter
	failover := onNode != "" && inst.Primary != "" && !strings.HasSuffix(onNode, ":"+inst.Primary)
	if !failover && !due {
		return onNode
	}
	dimension, err := r.cloud.Dimension(ctx, inst)
	if err != nil { // keep the rules as they are
		r.log.Warn("find the dimension that has data", zap.Error(err))
		return onNode
	}
	if _, value, _ := strings.Cut(dimension, ":"); value != inst.ID && onNode == "" {
		r.log.Info("the rules watch the primary node, because the instance has no data", zap.String("dimension", dimension))
	}
	return dimension
}
