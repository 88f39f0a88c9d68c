// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// sweeps runs a sweep at once and then at every interval. After each sweep it removes orphans in the background,
// because SMN may hang and the next sweep must not wait for it.
func (c *Controller) sweeps(ctx context.Context) {
	var orphans sync.WaitGroup
	defer orphans.Wait()
	var removing atomic.Bool
	for {
		begin := c.options.Now()
		switch err := c.sweep(ctx, begin); {
		case ctx.Err() != nil:
		case c.reportPanic("sweep failed", err):
		case err != nil:
			c.options.Log.Warn("sweep failed", zap.Error(err))
		case removing.CompareAndSwap(false, true):
			orphans.Go(func() {
				defer removing.Store(false)
				c.reportPanic("remove orphans", c.removeOrphans(ctx, begin))
			})
		}
		jitter := 1 + sweepJitter*(2*c.options.Chance()-1)
		timer := time.NewTimer(max(minSweep, time.Duration(float64(c.options.Sweep)*jitter)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// sweep lists the states of all alarm rules and enqueues every database. An alarm is therefore acted on even if its
// message is lost.
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
	if err := c.options.Kube.SyncHold(ctx); err != nil {
		c.options.Log.Warn("hold helm uninstall", zap.Error(err))
	}
	if listErr != nil {
		return fmt.Errorf("list alarm rules: %w", listErr)
	}
	c.meters.sweepDuration.Observe(c.options.Now().Sub(begin).Seconds())
	c.meters.lastSweep.Set(float64(c.options.Now().Unix()))
	return nil
}

// removeOrphans removes the alarm objects of RdsAutopilots that were deleted without our finalizer. It logs what fails,
// and returns only a panic.
func (c *Controller) removeOrphans(ctx context.Context, begin time.Time) (panicked error) {
	defer autopilot.CatchPanic(&panicked)
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	// The cache may lack a new RdsAutopilot, so Orphans also asks the API server before it removes anything.
	var known []*v1alpha1.RdsAutopilot
	c.options.Kube.EachAutopilot(func(a *v1alpha1.RdsAutopilot) { known = append(known, a) })
	removed, foreign, err := c.options.Cloud.Orphans(ctx, begin, known, c.options.Kube.LiveAutopilots)
	c.meters.foreign.Set(float64(foreign))
	for _, name := range removed {
		c.options.Log.Info("removed an orphan", zap.String("what", name))
	}
	if err != nil && ctx.Err() == nil {
		c.options.Log.Warn("remove orphans", zap.Error(err))
	}
	c.countUnwatched(ctx, begin)
	return nil
}

// countUnwatched counts the alarm objects of namespaces that nobody watches any more. The service does not remove them:
// the databases may still be there, and their RdsAutopilots have our finalizer.
func (c *Controller) countUnwatched(ctx context.Context, begin time.Time) {
	marked, err := c.options.Cloud.Marked(ctx, begin)
	if err != nil {
		return // Orphans has reported it
	}
	maps.DeleteFunc(marked, func(namespace string, _ int) bool { return c.options.Kube.IsWatched(namespace) })
	total := 0
	for _, n := range marked {
		total += n
	}
	c.meters.unwatched.Set(float64(total))
	if !maps.Equal(marked, c.unwatched) && len(marked) > 0 {
		c.options.Log.Warn("no installation watches the namespaces of these topics and alarm rules: watch them again, and turn their databases off before they are left out",
			zap.Strings("namespaces", slices.Sorted(maps.Keys(marked))), zap.Int("objects", total))
	}
	c.unwatched = marked
}
