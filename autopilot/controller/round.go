// SPDX-License-Identifier: Apache-2.0

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
	"github.com/mcsps/rds-autopilot/autopilot/decide"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// reconcileEnabled is the round of a database whose autopilot is on: observe, follow up, walk through the guards, store
// the intent, request the change, record the outcome. Arming follows in a queue of its own. c.Status is the status of
// the round at each step.
func (r *round) reconcileEnabled(ctx context.Context) (time.Duration, error) {
	r.warnOtherScalers()
	jobs := r.readJobs(ctx)
	c, err := r.observe(ctx)
	if err != nil {
		return 0, errors.Join(err, r.recordUnreachable(ctx, err))
	}
	c.Jobs = jobs
	followed, readErr := r.follow(&c)

	var patched record.Patched
	verdict := decide.Walk(ctx, &c, r.facts().Read)
	readErr = errors.Join(readErr, c.ReadError())
	r.countLostAlarms(c)

	c.Status = record.Intent(c, verdict)
	ended := followed.Ended
	var patchErr error
	if verdict.Intent != nil {
		if err := r.storeIntent(ctx, c.Status); err != nil {
			return 0, err
		}
		c.Status = r.rap.Status.Copy()
		r.emitEnded(ended)
		ended = nil
		r.keepsPlace = true
		patched, patchErr = r.request(ctx, *verdict.Intent)
		c.Now = r.options.Now()
	}

	r.readSizes(ctx, &c)
	outcome := record.Outcome(c, verdict, followed, patched)
	c.Status = outcome.Status
	armingDue := r.armingDue(c)
	if armingDue && !record.IsSwitchedOff(c.Status) { // arm sets Armed
		record.SetReady(&c.Status, readErr != nil, r.rap.Generation, r.now)
	} else {
		r.setArmed(&c.Status, readErr != nil)
	}
	err = errors.Join(readErr, patchErr)
	if writeErr := r.write(ctx, c.Status); writeErr != nil {
		return 0, errors.Join(writeErr, r.keepAnswer(ctx, c, patched.Cloud), err)
	}
	r.controller.limiter.check(r.key, r.now)
	r.keepsPlace = patched.Result == record.PatchAccepted
	r.emitEnded(append(ended, outcome.Ended...))
	r.emitDecisions(outcome.News)
	r.emitWarnings(outcome.Warnings)
	r.nameWAL(c, outcome.News)
	if armingDue {
		r.controller.enqueueArming(r.key)
	}
	return r.requeueAfter(outcome.RequeueAfter), err
}

// recordUnreachable stores that the cloud does not answer, and the last explicit value of spec.autopilot.
func (r *round) recordUnreachable(ctx context.Context, err error) error {
	next := r.rap.Status.Copy()
	next.Switch, next.ObservedGeneration, next.EffectiveMode = r.lastSwitch, r.rap.Generation, r.effectiveMode()
	r.notArmed(&next, autopilot.CloudUnreachable, "The cloud does not answer: "+err.Error())
	record.HoldUnread(&next, r.now)
	return r.write(ctx, next)
}

// patchRds requests the change from the operator, by writing the size or flavor into the spec of the Rds. If there is
// no Rds, or the Rds requests the change already, it does nothing.
func (r *round) patchRds(ctx context.Context, i v1alpha1.Intent) (record.Patched, error) {
	if r.target.NoRds {
		return record.Patched{}, nil
	}
	if r.target.Wanted.Includes(i) {
		return record.Patched{Result: record.PatchPresent}, nil
	}
	if err := r.confirmTarget(ctx); err != nil {
		return record.Patched{}, err
	}
	r.controller.remember(r.key, func(m *memory) { m.patch = &i }) // the watch event may come before the answer
	stored, err := r.kube.PatchRds(ctx, r.target, i)
	if refusal, refused := errors.AsType[*autopilot.RefusedError](err); refused {
		return record.Patched{Result: record.PatchRefused, Message: refusal.Message}, nil
	}
	if err != nil {
		return record.Patched{}, fmt.Errorf("patch Rds: %w", err)
	}
	r.target = stored
	if !stored.Wanted.Matches(i) {
		return record.Patched{Result: record.PatchReverted}, nil
	}
	return record.Patched{Result: record.PatchAccepted}, nil
}

// confirmTarget reads the target from the API server, because the user may have turned autopilot off or replaced the
// Rds while the round waited for the cloud. It returns autopilot.ErrConflict then.
func (r *round) confirmTarget(ctx context.Context) error {
	live, err := r.kube.LiveTarget(ctx, r.key.Namespace, r.key.Name)
	if err != nil {
		return fmt.Errorf("read the Rds again: %w", err)
	}
	if live.UID != r.target.UID || live.InstanceID != r.target.InstanceID {
		return fmt.Errorf("the Rds was replaced: %w", autopilot.ErrConflict)
	}
	if off := r.offFor(live, cmp.Or(r.controller.switches.of(r.key), r.lastSwitch)); off.Reason != "" {
		return fmt.Errorf("autopilot was turned off: %w", autopilot.ErrConflict)
	}
	return nil
}

// requeueAfter returns when to check this database again if no event comes first.
func (r *round) requeueAfter(soonest time.Duration) time.Duration {
	inst := r.rap.Status.Instance
	busy := inst == nil || inst.Status != autopilot.StatusActive &&
		inst.Status != autopilot.StatusStorageFull // a full instance may stay full for days
	changing := slices.ContainsFunc(r.rap.Status.Intents(), func(i *v1alpha1.Intent) bool {
		progress, _ := autopilot.RecordedProgress(*i, r.rap.Spec.Apply)
		return progress != autopilot.Unstarted
	})
	if !changing && !busy {
		return soonest
	}
	if soonest > 0 {
		return min(soonest, r.options.Recheck)
	}
	return r.options.Recheck
}

// warnOtherScalers emits one event if the operator's own autopilot is on, which anybody can trigger.
func (r *round) warnOtherScalers() {
	if !r.target.OperatorAutopilot || !r.setWarned() {
		return
	}
	r.kube.Event(r.target, r.rap, autopilot.Event{
		Warning: true, Reason: eventOperator, Action: eventObserve,
		Note: "spec.endpoint is set, so the operator's own autopilot is on as well. It acts on unverified messages. Clear spec.endpoint",
	})
}

// setWarned records the event about the operator's autopilot, and reports whether it is the first.
func (r *round) setWarned() (first bool) {
	r.controller.remember(r.key, func(m *memory) {
		first = m.warned != r.target.UID
		m.warned = r.target.UID
	})
	return first
}

// emitEnded logs how changes ended, and emits one event for each.
func (r *round) emitEnded(ended []v1alpha1.Change) {
	for _, ch := range ended {
		r.log.Info("change ended", zap.String("kind", string(ch.Kind)), zap.String("by", string(ch.By)),
			zap.String("from", ch.From), zap.String("to", ch.To), zap.String("outcome", string(ch.Outcome)))
		r.kube.Event(r.target, r.rap, autopilot.Event{
			Warning: ch.Outcome != v1alpha1.OutcomeCompleted, Change: true, Reason: string(ch.Outcome), Action: string(ch.Kind),
			Note: autopilot.DescribeChange(ch),
		})
	}
}

// emitDecisions emits event, metric and log line of each new decision, with the same reason code.
func (r *round) emitDecisions(news []autopilot.Decision) {
	for _, d := range news {
		r.controller.meters.decisions.WithLabelValues(string(d.Metric), string(d.Action), string(d.Reason)).Inc()
		r.log.Info("decision", zap.String("metric", string(d.Metric)), zap.String("action", string(d.Action)),
			zap.String("reason", string(d.Reason)), zap.String("from", d.From), zap.String("to", d.To),
			zap.String("messageID", d.MessageID), zap.String("message", d.Text()))
		e := autopilot.Event{Warning: d.Reason.IsWarning(), Reason: string(d.Reason), Action: string(d.Action),
			Note: d.Text()}
		if d.Acts() {
			e.Reason, e.Change = string(d.Action), true
			if !d.Since.IsZero() && !r.episodeServed(d) {
				r.controller.meters.alarmToPatch.Observe(r.options.Now().Sub(d.Since).Seconds())
			}
		}
		r.kube.Event(r.target, r.rap, e)
	}
}

// episodeServed reports whether the alarm has had a change already. The latency metric counts only the first.
func (r *round) episodeServed(d autopilot.Decision) bool {
	return slices.ContainsFunc(r.rap.Status.Changes, func(ch v1alpha1.Change) bool {
		return slices.Contains(ch.Metrics, d.Metric) && ch.DecisionTime != nil && ch.DecisionTime.After(d.Since)
	})
}

// emitWarnings emits the warnings. The stored status has them already, so that the next leader does not repeat them.
func (r *round) emitWarnings(warnings []autopilot.Warning) {
	for _, w := range warnings {
		r.log.Warn("warning", zap.String("reason", string(w.Reason)), zap.String("message", w.Message))
		r.kube.Event(r.target, r.rap, autopilot.Event{Warning: true, Reason: string(w.Reason), Action: eventObserve,
			Note: w.Message})
	}
}
