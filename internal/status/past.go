// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// pastPatience is how long the page of a database waits for the cloud. After that, it comes without plots, and the next
// request shows them.
const pastPatience = 2 * time.Second

// span is the time range of a plot.
type span struct {
	Label  string
	length time.Duration
	period time.Duration // of an average; Cloud Eye offers fixed ones
}

func spans() []span {
	return []span{{"24 hours", 24 * time.Hour, 5 * time.Minute}, {"14 days", 14 * 24 * time.Hour, time.Hour}}
}

// pasts holds the measurements of each span.
type pasts []autopilot.Past

func (p *pages) askPasts(ctx context.Context, namespace, name string) (pasts, error) {
	var all pasts
	for _, s := range spans() {
		past, err := p.Past(ctx, namespace, name, s.period, p.Now().Add(-s.length))
		if err != nil {
			return nil, err
		}
		all = append(all, drawable(past))
	}
	return all, nil
}
