package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// reconcileEnabled is the round of a database whose autopilot is on: observe, follow up what is pending, decide, record the
// intent, apply it, record what became of it. Arming comes afterwards, in a queue of its own.
func (r *round) reconcileEnabled(ctx context.Context) (time.Duration, error) {
	r.warnOfOperator()
	inst, err := r.instance(ctx)
	if err != nil {
		message := "The cloud cannot be asked: " + err.Error()
		autopilot.SetCondition(&r.next, v1alpha1.ConditionArmed, false, autopilot.CloudUnreachable, message, r.rap.Generation, r.now)
		r.next.ObservedGeneration = r.rap.Generation
		return 0, errors.Join(err, r.write(ctx))
	}
	r.now = r.Now() // what is seen now must not be dated to before the listing that shows it
	c := r.caseOf(inst)
	followed := autopilot.Follow(c)
	c.Status = followed.Status
	alarmsErr := r.readAlarms(ctx, &c)
	v, flavorErr := r.decide(ctx, &c)
	defer r.limiter.release(r.key)

	c.Status = autopilot.Intend(c, v)
	ended := followed.Ended
	var patched autopilot.Patched
	var patchErr error
	if v.Intent != nil {
		// The intent is stored before anything is patched. A conflict here means that this round was decided on old news.
		r.next = c.Status
		if err := r.fence(ctx); err != nil {
			return 0, err
		}
		r.emitEnded(ended)
		ended, c.Status = nil, r.next
		patched, patchErr = r.patch(ctx, *v.Intent)
		c.Now = r.Now()
	}
	done := autopilot.Conclude(c, v, followed.Asked, patched)
	r.next = done.Status
	r.next.ObservedGeneration = r.rap.Generation
	due := r.armingDue(c)
	if !due {
		r.setArmed(c.Spec, &r.next)
	}
	if err := r.write(ctx); err != nil {
		return 0, errors.Join(err, patchErr)
	}
	r.emitEnded(append(ended, done.Ended...))
	r.emitDecisions(done.News)
	r.emitWarnings(done.Warnings)
	if due {
		r.enqueueArming(r.key)
	}
	return r.again(done.Again), errors.Join(patchErr, alarmsErr, flavorErr)
}

// decide asks the domain, and reads what only a change of flavor depends on once everything else allows it.
func (r *round) decide(ctx context.Context, c *autopilot.Case) (autopilot.Verdict, error) {
	var err error
	if c.MayChangeFlavor() {
		if c.Catalogue, err = r.Cloud.Catalogue(ctx, *c.Instance); err != nil {
			err = fmt.Errorf("read flavors: %w", err)
		}
		for _, f := range c.Catalogue { // until the instance's own list is read
			c.Offered = append(c.Offered, f.Code)
		}
		c.OfferedKnown = true
	}
	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.KindVolume, v1alpha1.KindFlavor} {
		if len(c.Alarms) > 0 && c.Rival == "" && c.Interfered(kind) {
			var writerErr error
			c.Rival, writerErr = r.Cluster.Writer(ctx, r.rds, kind)
			err = errors.Join(err, writerErr)
		}
	}
	v := autopilot.Decide(*c)
	if !proposesFlavor(v) {
		return v, err
	}
	if !r.limiter.take(r.key, r.MaxFlavorChanges, r.now) {
		c.FleetBusy = true
		return autopilot.Decide(*c), err
	}
	offered, known, listErr := r.Cloud.ResizeList(ctx, *c.Instance)
	if c.Offered, c.OfferedKnown = offered, known; listErr != nil {
		c.Catalogue = nil
		err = errors.Join(err, fmt.Errorf("read the resize list: %w", listErr))
	}
	if v = autopilot.Decide(*c); v.Intent == nil || v.Intent.Kind != v1alpha1.KindFlavor {
		r.limiter.release(r.key)
	}
	return v, err
}

// proposesFlavor reports whether a verdict is to change the flavor, or would be in mode Auto.
func proposesFlavor(v autopilot.Verdict) bool {
	return slices.ContainsFunc(v.Decisions, func(d autopilot.Decision) bool { return d.Action == autopilot.ActionChangeFlavor })
}

// patch asks the operator for what is intended, and says what became of that. What the user has said meanwhile comes first.
func (r *round) patch(ctx context.Context, i v1alpha1.Intent) (autopilot.Patched, error) {
	rds, ok := r.latestRds(r.key)
	if !ok || rds.UID != r.rds.UID || rds.Status.ID != r.rds.Status.ID {
		return autopilot.Patched{}, fmt.Errorf("the Rds is another one by now: %w", autopilot.ErrConflict)
	}
	if reason, _ := Off(rds, r.rap, cmp.Or(r.words.of(r.key), r.next.Switch)); reason != "" {
		return autopilot.Patched{}, fmt.Errorf("autopilot was turned off meanwhile: %w", autopilot.ErrConflict)
	}
	stored, err := r.Cluster.PatchRds(ctx, r.rds, i)
	switch refusal, refused := errors.AsType[*autopilot.RefusedError](err); {
	case refused:
		return autopilot.Patched{Result: autopilot.PatchRefused, Words: refusal.Words}, nil
	case err != nil:
		return autopilot.Patched{}, fmt.Errorf("patch Rds: %w", err)
	}
	r.patchedRds.keep(r.key, stored)
	if !wanted(stored).Asks(i) {
		return autopilot.Patched{Result: autopilot.PatchTakenBack}, nil
	}
	return autopilot.Patched{Result: autopilot.PatchAccepted}, nil
}

// again is when to look at this database next, unless an event comes first.
func (r *round) again(soonest time.Duration) time.Duration {
	inst := r.next.Instance
	busy := inst == nil || inst.Status != autopilot.StatusActive && inst.Status != autopilot.StatusStorageFull // a full one may be full for days
	if len(r.next.Intents()) == 0 && !busy {
		return soonest
	}
	if soonest > 0 {
		return min(soonest, r.Recheck)
	}
	return r.Recheck
}

// warnOfOperator tells once of the operator's own autopilot, which anybody can trigger.
func (r *round) warnOfOperator() {
	if r.rds.Spec.Endpoint == "" || !r.firstWarning() {
		return
	}
	r.Cluster.Event(r.rds, r.rap, Event{Warning: true, Reason: eventOperator, Action: eventObserve, Note: "spec.endpoint is set: the operator's own autopilot is on as well, and acts on messages that nobody verifies. Clear spec.endpoint"})
}

func (r *round) firstWarning() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.warned[r.rds.UID]
	r.warned[r.rds.UID] = true
	return !was
}

// emitEnded says how changes ended.
func (r *round) emitEnded(ended []v1alpha1.Change) {
	for _, ch := range ended {
		r.log.Info("change ended", zap.String("kind", string(ch.Kind)), zap.String("by", string(ch.By)),
			zap.String("from", ch.From), zap.String("to", ch.To), zap.String("outcome", string(ch.Outcome)))
		r.Cluster.Event(r.rds, r.rap, Event{
			Warning: ch.Outcome != v1alpha1.OutcomeCompleted, Change: true, Reason: string(ch.Outcome), Action: string(ch.Kind),
			Note: autopilot.DescribeChange(ch),
		})
	}
}

// emitDecisions says what was decided, and done: event, metric and log line with one reason code.
func (r *round) emitDecisions(news []autopilot.Decision) {
	for _, d := range news {
		r.meters.decisions.WithLabelValues(string(d.Metric), string(d.Action), string(d.Reason)).Inc()
		r.log.Info("decision", zap.String("metric", string(d.Metric)), zap.String("action", string(d.Action)),
			zap.String("reason", string(d.Reason)), zap.String("from", d.From), zap.String("to", d.To),
			zap.String("messageID", d.MessageID), zap.String("message", d.Message))
		e := Event{Warning: d.Reason.IsWarning(), Reason: string(d.Reason), Action: string(d.Action), Note: d.Message}
		if d.Acts() {
			e.Reason, e.Change = string(d.Action), true
			if !d.Since.IsZero() && !r.episodeServed(d) {
				r.meters.alarmToPatch.Observe(r.Now().Sub(d.Since).Seconds())
			}
		}
		r.Cluster.Event(r.rds, r.rap, e)
	}
}

// episodeServed reports whether the alarm had a change already: the latency is that of the first.
func (r *round) episodeServed(d autopilot.Decision) bool {
	return slices.ContainsFunc(r.rap.Status.Changes, func(ch v1alpha1.Change) bool {
		return slices.Contains(ch.Metrics, d.Metric) && ch.DecisionTime != nil && ch.DecisionTime.After(d.Since)
	})
}

// emitWarnings says what people should know before it is too late; the status knows by now that they were told.
func (r *round) emitWarnings(warnings []autopilot.Warning) {
	for _, w := range warnings {
		r.log.Warn("warning", zap.String("reason", string(w.Reason)), zap.String("message", w.Message))
		r.Cluster.Event(r.rds, r.rap, Event{Warning: true, Reason: string(w.Reason), Action: eventObserve, Note: w.Message})
	}
}
