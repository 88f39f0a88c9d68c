package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// sweeps looks at every database at once and then at every interval.
func (c *Controller) sweeps(ctx context.Context) {
	for {
		if err := c.sweep(ctx); err != nil && ctx.Err() == nil {
			c.Log.Warn("sweep failed", zap.Error(err))
		}
		jitter := 1 + sweepJitter*(2*c.Chance()-1)
		timer := time.NewTimer(max(sweepAtLeast, time.Duration(float64(c.Sweep)*jitter)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// sweep lists what the cloud has, page by page and never per object, and has every database looked at with it: with
// every message lost, an alarm is acted on all the same. Then it removes what nobody owns any more.
func (c *Controller) sweep(ctx context.Context) error {
	begin := c.Now()
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	_, listErr := c.Cloud.AlarmStates(ctx, begin)
	// Even where the cloud does not answer: every database is to say so.
	keys := make(map[Key]bool)
	for _, a := range c.Cluster.Autopilots() {
		keys[Key{a.Namespace, a.Name}] = true
	}
	for _, r := range c.Cluster.AllRds() {
		keys[Key{r.Namespace, r.Name}] = true
	}
	for k := range keys {
		c.lookFor(k, begin)
	}
	if listErr != nil {
		return fmt.Errorf("list alarm rules: %w", listErr)
	}
	err := c.orphans(ctx, begin)
	c.meters.sweepDuration.Observe(c.Now().Sub(begin).Seconds())
	c.meters.lastSweep.Set(float64(c.Now().Unix()))
	return err
}

// orphans removes what an autopilot left behind that is gone without a finalizer.
func (c *Controller) orphans(ctx context.Context, begin time.Time) error {
	// The cache may be behind, and what is removed is gone: so the API server is asked before.
	removed, foreign, err := c.Arming.Orphans(ctx, begin, c.Cluster.Autopilots(), c.Cluster.LiveAutopilots)
	c.meters.foreign.Set(float64(foreign))
	for _, what := range removed {
		c.Log.Info("removed an orphan", zap.String("what", what))
	}
	if err != nil {
		return errors.Join(errors.New("remove orphans"), err)
	}
	return nil
}
