// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func (c *Controller) sweeps(ctx context.Context) {
	for {
		if err := c.sweep(ctx, c.options.Now()); err != nil && ctx.Err() == nil && !c.reportPanic("sweep failed", err) {
			c.options.Log.Warn("sweep failed", zap.Error(err))
		}
		jitter := 1 + sweepJitter*(2*c.options.Chance()-1)
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(minSweep, time.Duration(float64(c.options.Sweep)*jitter))):
		}
	}
}

// sweep lists the states of all alarm rules and enqueues every database, and every object that has a rule in the cloud.
// An alarm is therefore acted on even if its message is lost.
func (c *Controller) sweep(ctx context.Context, begin time.Time) (err error) {
	defer autopilot.CatchPanic(&err)
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	_, listErr := c.options.Cloud.AlarmStates(ctx, begin)
	// The databases are enqueued even if the cloud does not answer, because each of them has to report that.
	keys := make(map[Key]bool)
	c.options.Kube.EachAutopilot(func(a *v1alpha1.RdsAutopilot) { keys[Key{a.Namespace, a.Name}] = true })
	c.options.Kube.EachTarget(func(t *autopilot.Target) { keys[Key{t.Namespace, t.Name}] = true })
	for k := range keys {
		c.enqueueForSweep(k, begin)
	}
	if listErr != nil {
		return fmt.Errorf("list alarm rules: %w", listErr)
	}
	// What bears a mark of ours and has no object is left from a crash or an outage.
	err = c.options.Cloud.Marked(ctx, begin, func(namespace, name string) {
		if k := (Key{namespace, name}); !keys[k] && c.options.Kube.IsWatched(namespace) {
			c.enqueueForSweep(k, begin)
		}
	})
	if err != nil {
		return err
	}
	c.meters.sweepDuration.Observe(c.options.Now().Sub(begin).Seconds())
	c.meters.lastSweep.Set(float64(c.options.Now().Unix()))
	return nil
}
