// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"math"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// Cloud Eye's names of the gauges (docs/cloud-facts.md#metric-data).
const (
	walMB         = "rds040_transaction_logs_usage"
	inactiveSlots = "inactive_logical_replication_slot"
	mbPerGB       = 1024.0 // as Cloud Eye counts
)

// WAL returns the newest values of the gauges of WAL. A gauge without data counts as 0.
func (c *Cloud) WAL(ctx context.Context, inst autopilot.Instance, dimension string) (autopilot.WAL, error) {
	of, err := series(inst, dimension)
	if err != nil {
		return autopilot.WAL{}, err
	}
	wal, slots := of(walMB), of(inactiveSlots)
	found, err := c.points.get(ctx, rawPeriod, []Series{wal, slots}, time.Time{})
	newest := func(s Series) float64 {
		points := c.credible(found[s], rawPeriod, math.MaxInt32)
		if len(points) == 0 {
			return 0
		}
		return points[len(points)-1].Value
	}
	return autopilot.WAL{GB: newest(wal) / mbPerGB, InactiveSlots: int(newest(slots))}, err
}
