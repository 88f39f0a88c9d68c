// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// walLimit is how long naming WAL may take. Cloud Eye answers within a second, and nobody waits for the sentence.
const walLimit = 30 * time.Second

// nameWAL starts a read of the gauges of WAL after a growth of a PostgreSQL volume was requested. It does not wait.
func (r *round) nameWAL(c autopilot.Case, news []autopilot.Decision) {
	i := slices.IndexFunc(news, func(d autopilot.Decision) bool {
		return d.Acts() && d.Action == autopilot.ActionGrowVolume
	})
	q := r.controller.leading()
	if i < 0 || q == nil || c.Instance.Engine != autopilot.EnginePostgreSQL {
		return
	}
	q.background(func(ctx context.Context) { _ = r.controller.addWAL(ctx, r.key, c, news[i]) }) // a failure says nothing
}

// addWAL adds a sentence to the record of a growth, and emits a warning, if much of the used space is WAL.
func (c *Controller) addWAL(ctx context.Context, key Key, cs autopilot.Case, d autopilot.Decision) (err error) {
	defer autopilot.CatchPanic(&err)
	ctx, cancel := context.WithTimeout(ctx, walLimit)
	defer cancel()
	wal, err := c.options.Cloud.WAL(ctx, *cs.Instance, ruleDimension(cs, v1alpha1.MetricStorage))
	sentence := ""
	for _, a := range cs.Alarms {
		if a.Metric == v1alpha1.MetricStorage {
			sentence = wal.Describe(a.Evidence.UsedGB)
		}
	}
	r, ok := c.newRound(key)
	if err != nil || sentence == "" || !ok {
		return err
	}
	if r.rap, err = r.readAgain(ctx); err != nil { // the cache may lack the record
		return err
	}
	isRecorded := false
	err = r.update(ctx, func(s *v1alpha1.Status) { isRecorded = record.AddSentence(s, d, sentence) })
	if err == nil && isRecorded {
		r.emitWarnings([]autopilot.Warning{{Reason: autopilot.ReasonCauseNotData, Message: sentence +
			". See docs/why-is-it-full.md"}})
	}
	return err
}
