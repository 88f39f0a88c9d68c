// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// causeLimit is how long a round waits for the metrics that tell the cause of a full volume. The change is
	// requested by then, so only its record is late.
	causeLimit = 3 * time.Second
	// causeQueue is how many databases may wait for their round before a round leaves the cause to a later one. In a
	// storm of alarms the requests of other databases are more urgent.
	causeQueue = 10
	// capLimit is how long a sweep's round waits for the used space of 14 days. It shares its request with others.
	capLimit = 30 * time.Second
)

// ReadCause returns what fills the volume of a database. It makes one request, or none for an engine without metrics.
func ReadCause(ctx context.Context, reader SeriesReader, c autopilot.Case) (found v1alpha1.Cause, err error) {
	defer autopilot.CatchPanic(&err)
	metrics := autopilot.CauseMetrics(c.Instance.Engine)
	if len(metrics) == 0 {
		return autopilot.CauseOf(*c.Instance, nil, c.Now), nil
	}
	s, err := reader.Series(ctx, *c.Instance, SeriesRequest{
		Metrics: metrics, Dimension: ruleDimension(c, v1alpha1.MetricStorage), Period: autopilot.CausePeriod,
		Since: c.CauseSince(),
	})
	if err != nil {
		return found, err
	}
	return autopilot.CauseOf(*c.Instance, s, c.Now), nil
}

// readCause adds the cause of a full volume to the case and reports whether it was read. A failed read is logged only:
// the next round reads it again as long as the change is pending.
func (r *round) readCause(ctx context.Context, c *autopilot.Case) bool {
	if c.Instance == nil {
		return false
	}
	isRead := len(autopilot.CauseMetrics(c.Instance.Engine)) > 0 // otherwise the cause costs no request
	if q := r.controller.leading(); isRead && q != nil && q.decideQueue().Len() > causeQueue {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, causeLimit)
	defer cancel()
	found, err := ReadCause(ctx, r.cloud, *c)
	if err != nil {
		r.log.Info("read the cause of a full volume", zap.Error(err))
		return false
	}
	c.Status.Cause = &found
	return true
}

// ReadSteady reports whether nothing was freed in the hours before a measurement of the used space. It makes one
// request and waits for 3 seconds at most.
func ReadSteady(ctx context.Context, reader SeriesReader, c autopilot.Case, end time.Time) (steady bool, err error) {
	defer autopilot.CatchPanic(&err)
	metric, err := autopilot.LookupMetric(v1alpha1.MetricStorage)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, causeLimit)
	defer cancel()
	s, err := reader.Series(ctx, *c.Instance, SeriesRequest{
		Metrics: []string{metric.UsedGB}, Dimension: ruleDimension(c, v1alpha1.MetricStorage),
		Period: autopilot.FreedPeriod, Since: end.Add(-autopilot.FreedSpan),
	})
	return err == nil && autopilot.NothingFreed(s[metric.UsedGB], end), err
}

// readSteady returns the answer of ReadSteady. A failed read is logged only and counts as no: the alarm still comes,
// and the next sweep reads again.
func (r *round) readSteady(ctx context.Context, c autopilot.Case, end time.Time) bool {
	steady, err := ReadSteady(ctx, r.cloud, c, end)
	if err != nil {
		r.log.Info("read the used space before an early step", zap.Error(err))
	}
	return steady
}

// readLoad adds what shows whether a larger flavor helps. A failed read is logged only, and the flavor is decided
// without it.
func (r *round) readLoad(ctx context.Context, c *autopilot.Case) {
	load, err := ReadLoad(ctx, r.cloud, *c)
	if err != nil {
		r.log.Info("read the load before a change of flavor", zap.Error(err))
	}
	c.Load = load
}

// readLoadAfter records the load after our last flavor, in a round of a sweep without a change. A failed read is logged
// only: the next sweep repeats it.
func (r *round) readLoadAfter(ctx context.Context, c *autopilot.Case, v autopilot.Verdict) {
	if !r.isSweep || v.Intent != nil || !c.NeedsLoadAfter() {
		return
	}
	load, err := ReadLoad(ctx, r.cloud, *c)
	if err != nil {
		r.log.Info("read the load after a change of flavor", zap.Error(err))
		return
	}
	c.RecordLoadAfter(load)
}

// ReadLoad returns the averages of the last hour that show whether a larger flavor helps. It makes one request and
// waits for 3 seconds at most.
func ReadLoad(ctx context.Context, reader SeriesReader, c autopilot.Case) (load autopilot.Series, err error) {
	defer autopilot.CatchPanic(&err)
	ctx, cancel := context.WithTimeout(ctx, causeLimit)
	defer cancel()
	return reader.Series(ctx, *c.Instance, SeriesRequest{
		Metrics: autopilot.LoadMetrics(c.Instance.Engine), Dimension: ruleDimension(c, v1alpha1.MetricCPU),
		Period: autopilot.LoadPeriod, Since: c.Now.Add(-autopilot.LoadSpan),
	})
}

// readCapForecast adds the forecast of the cap to the case if it is due. Only the rounds of a sweep without a change do
// so, because a decision must not wait for it. A failed read is logged only: the next sweep repeats it.
func (r *round) readCapForecast(ctx context.Context, c *autopilot.Case, v autopilot.Verdict) {
	if !r.isSweep || v.Intent != nil || !c.NeedsCapForecast() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, capLimit)
	defer cancel()
	used, err := r.cloud.UsedSpace(ctx, *c.Instance, ruleDimension(*c, v1alpha1.MetricStorage))
	if err != nil {
		r.log.Info("read the used space of 14 days", zap.Error(err))
		return
	}
	found := c.CapForecast(used)
	c.Status.CapForecast = &found
}
