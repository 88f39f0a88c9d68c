// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// sweeps looks at every database at once and then at every interval. Beside that, what nobody owns any more is removed; the
// next sweep does not wait for it, because SMN may hang.
func (c *Controller) sweeps(ctx context.Context) {
	var orphans sync.WaitGroup
	defer orphans.Wait()
	var looking atomic.Bool
	for {
		begin := c.Now()
		switch err := c.sweep(ctx, begin); {
		case ctx.Err() != nil:
		case err != nil:
			c.Log.Warn("sweep failed", zap.Error(err))
		case looking.CompareAndSwap(false, true):
			orphans.Go(func() {
				defer looking.Store(false)
				c.removeOrphans(ctx, begin)
			})
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

// sweep lists the state of all alarm rules, page by page and never per object, and has every database looked at with it:
// with every message lost, an alarm is acted on all the same.
func (c *Controller) sweep(ctx context.Context, begin time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	c.mu.Lock()
	maps.DeleteFunc(c.percent, func(_ string, chosen Key) bool { return chosen != Key{} })
	c.mu.Unlock()
	_, listErr := c.Cloud.AlarmStates(ctx, begin)
	// Even where the cloud does not answer: every database is to say so.
	keys := make(map[Key]bool)
	c.Cache.EachAutopilot(func(a *v1alpha1.RdsAutopilot) { keys[Key{a.Namespace, a.Name}] = true })
	c.Cache.EachTarget(func(t *autopilot.Target) { keys[Key{t.Namespace, t.Name}] = true })
	for k := range keys {
		c.enqueueForSweep(k, begin)
	}
	if listErr != nil {
		return fmt.Errorf("list alarm rules: %w", listErr)
	}
	c.meters.sweepDuration.Observe(c.Now().Sub(begin).Seconds())
	c.meters.lastSweep.Set(float64(c.Now().Unix()))
	return nil
}

// removeOrphans removes what an autopilot left behind that is gone without a finalizer.
func (c *Controller) removeOrphans(ctx context.Context, begin time.Time) {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	// The cache may be behind, and what is removed is gone: so the API server is asked before.
	var known []*v1alpha1.RdsAutopilot
	c.Cache.EachAutopilot(func(a *v1alpha1.RdsAutopilot) { known = append(known, a) })
	removed, foreign, err := c.Arming.Orphans(ctx, begin, known, c.Store.LiveAutopilots)
	c.meters.foreign.Set(float64(foreign))
	for _, what := range removed {
		c.Log.Info("removed an orphan", zap.String("what", what))
	}
	if err != nil && ctx.Err() == nil {
		c.Log.Warn("remove orphans", zap.Error(err))
	}
}
