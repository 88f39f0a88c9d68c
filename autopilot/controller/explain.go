// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/insight"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// explainers is the number of parallel looks. It is low, because nobody waits for them and each costs up to three
	// requests.
	explainers = 4
	// seriesLimit is how long a look waits for one request. A hanging service must not stop the looks at others.
	seriesLimit = 30 * time.Second
)

// enqueueExplaining requests a look at what happened to a database, if one is due. The round that calls it has stored
// and requested everything by then.
func (c *Controller) enqueueExplaining(k Key, seen autopilot.Case) {
	if q := c.leading(); q != nil && insight.DueNow(seen).Any() {
		q.explain.Add(k)
	}
}

// explain reads Cloud Eye's history of one database and stores status.insight. No decision waits for it or depends on
// it. A failed read is stored, too, so that the next look is an hour later.
func (c *Controller) explain(ctx context.Context, key Key) (time.Duration, error) {
	r, ok := c.newRound(key)
	if !ok || r.off() != (autopilot.Off{}) {
		return 0, nil
	}
	// The cache may not have the change yet that this look is about, or the last look.
	live, err := r.kube.LiveAutopilot(ctx, key.Namespace, key.Name)
	if err != nil {
		return 0, fmt.Errorf("read the RdsAutopilot to explain: %w", err)
	}
	r.rap, r.notBefore = live, r.now.Add(-r.options.Sweep)
	cs, err := r.observe(ctx)
	if err != nil { // the decide queue reports it, and requests another look
		r.log.Info("read what a look is about", zap.Error(err))
		return 0, nil
	}
	due := insight.DueNow(cs)
	if !due.Any() || !isAbout(cs.Status, *cs.Instance) {
		return 0, nil
	}
	found := insight.Update(cs, due, r.readHistory(ctx, cs, due))
	err = r.update(ctx, func(s *v1alpha1.Status) {
		// Autopilot may have been turned off during the look, or the name may stand for another database.
		off := r.offFor(r.kube.Target(key.Namespace, key.Name), cmp.Or(c.switches.of(key), s.Switch))
		if off == (autopilot.Off{}) && isAbout(*s, *cs.Instance) {
			s.Insight = found
		}
	})
	if err != nil { // a retry would read the history again, and the next round that can store its status requests a look
		r.log.Warn("store what a look has found", zap.Error(err))
	}
	return 0, nil
}

// isAbout reports whether a status is about that instance.
func isAbout(s v1alpha1.Status, inst autopilot.Instance) bool {
	return s.Instance != nil && s.Instance.ID == inst.ID
}

// readHistory reads the parts that are due. A failed read is logged, and its error is part of the result.
func (r *round) readHistory(ctx context.Context, c autopilot.Case, due insight.Due) insight.History {
	h := ReadHistory(ctx, r.cloud, c, due)
	for part, err := range map[string]error{"cause": h.CauseErr, "load": h.LoadErr, "used space": h.UsedErr} {
		if err != nil {
			r.log.Info("read Cloud Eye's history", zap.String("part", part), zap.Error(err))
		}
	}
	return h
}

// ReadHistory reads the parts of Cloud Eye's history that are due: one request for the cause, one for the load, and a
// share of a request for the used space. Each has a deadline of its own.
func ReadHistory(ctx context.Context, reader SeriesReader, c autopilot.Case, due insight.Due) (h insight.History) {
	series := func(metrics []string, of v1alpha1.Metric, period time.Duration, since time.Time) (s autopilot.Series, err error) {
		defer autopilot.CatchPanic(&err)
		if len(metrics) == 0 {
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(ctx, seriesLimit)
		defer cancel()
		return reader.Series(ctx, *c.Instance, SeriesRequest{
			Metrics: metrics, Dimension: ruleDimension(c, of), Period: period, Since: since,
		})
	}
	if due.Cause {
		h.Cause, h.CauseErr = series(insight.CauseMetrics(c.Instance.Engine), v1alpha1.MetricStorage, insight.CausePeriod,
			insight.CauseSince(c))
	}
	if due.Load {
		h.Load, h.LoadErr = series(insight.LoadMetrics(c.Instance.Engine), v1alpha1.MetricCPU, insight.LoadPeriod,
			insight.LoadSince(c))
	}
	if due.Cap {
		h.Used, h.UsedErr = usedSpace(ctx, reader, c)
	}
	return h
}

func usedSpace(ctx context.Context, reader SeriesReader, c autopilot.Case) (used []autopilot.Point, err error) {
	defer autopilot.CatchPanic(&err)
	ctx, cancel := context.WithTimeout(ctx, seriesLimit)
	defer cancel()
	return reader.UsedSpace(ctx, *c.Instance, ruleDimension(c, v1alpha1.MetricStorage))
}
