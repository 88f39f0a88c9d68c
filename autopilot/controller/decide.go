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
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// reconcileEnabled is the round of a database whose autopilot is on. Its arming comes afterwards, in a queue of its own.
func (r *round) reconcileEnabled(ctx context.Context) (time.Duration, error) {
	r.warnOtherScalers()
	jobs := r.readJobs(ctx)
	c, err := r.observe(ctx)
	if err != nil {
		return 0, errors.Join(err, r.recordUnreachable(ctx, err))
	}
	c.Jobs = jobs
	followed := autopilot.FollowUp(c)
	c.Status = followed.Status
	defer r.limiter.release(r.key)
	err = errors.Join(r.readAlarms(ctx, &c), r.readWriters(ctx, &c), r.readFlavors(ctx, &c))
	lookFailed := err != nil
	v := autopilot.Decide(c)
	if v.Intent == nil || v.Intent.Kind != v1alpha1.KindFlavor {
		r.limiter.release(r.key)
	}

	c.Status = autopilot.RecordIntent(c, v)
	ended := followed.Ended
	var patched autopilot.Patched
	asking := c // of the cloud
	if v.Intent != nil {
		if err := r.storeIntent(ctx, c.Status); err != nil {
			return 0, err
		}
		r.emitEnded(ended)
		ended, c.Status = nil, r.rap.Status.Copy()
		var applyErr error
		patched, applyErr = r.apply(ctx, *v.Intent)
		err = errors.Join(err, applyErr)
		c.Now = r.Now()
		asking = c
		if latest := r.latestTarget(r.key); latest != nil && patched.Result == autopilot.PatchAccepted {
			asking.Wanted = latest.Wanted
		}
	}
	if i := asking.ToAsk(); i != nil {
		if v.Intent == nil { // else it was just stored
			if err := r.storeIntent(ctx, c.Status); err != nil {
				return 0, err
			}
			r.emitEnded(ended)
			ended, c.Status = nil, r.rap.Status.Copy()
		}
		patched.Cloud = r.change(ctx, *i)
		c.Now = r.Now()
	}
	done := autopilot.RecordOutcome(c, v, followed, patched)
	due := r.armingDue(c)
	switch {
	case !due || autopilot.SaysOff(done.Status):
		r.setArmed(&done.Status, lookFailed)
	default: // arm sets Armed
		autopilot.SetReady(&done.Status, lookFailed, r.rap.Generation, r.now)
	}
	if writeErr := r.write(ctx, done.Status); writeErr != nil {
		if errors.Is(writeErr, autopilot.ErrConflict) {
			writeErr = errors.Join(writeErr, r.keepAnswer(ctx, c, patched.Cloud))
		}
		return 0, errors.Join(writeErr, err)
	}
	r.emitEnded(append(ended, done.Ended...))
	r.emitDecisions(done.News)
	r.emitWarnings(done.Warnings)
	if due {
		r.enqueueArming(r.key)
	}
	return r.requeueAfter(done.Again), err
}

// recordUnreachable says in the status that the cloud does not answer, and stores the last value of spec.autopilot.
func (r *round) recordUnreachable(ctx context.Context, err error) error {
	next := r.rap.Status.Copy()
	next.Switch, next.ObservedGeneration = r.lastSwitch, r.rap.Generation
	autopilot.SetCondition(&next, v1alpha1.ConditionArmed, false, autopilot.CloudUnreachable, "The cloud cannot be asked: "+err.Error(), r.rap.Generation, r.now)
	autopilot.SetReady(&next, false, r.rap.Generation, r.now)
	return r.write(ctx, next)
}

// apply asks for what is intended, and returns what became of that. A switch that the user has changed meanwhile comes first.
func (r *round) apply(ctx context.Context, i v1alpha1.Intent) (autopilot.Patched, error) {
	if err := r.checkTarget(); err != nil || r.target.NoRds {
		return autopilot.Patched{}, err
	}
	r.patches.begin(r.key)
	defer r.patches.end(r.key)
	stored, err := r.Applier.Apply(ctx, r.target, i)
	switch refusal, refused := errors.AsType[*autopilot.RefusedError](err); {
	case refused:
		return autopilot.Patched{Result: autopilot.PatchRefused, Message: refusal.Message}, nil
	case err != nil:
		return autopilot.Patched{}, fmt.Errorf("patch Rds: %w", err)
	}
	r.applied.Keep(r.key, stored)
	if !stored.Wanted.Asks(i) {
		return autopilot.Patched{Result: autopilot.PatchTakenBack}, nil
	}
	return autopilot.Patched{Result: autopilot.PatchAccepted}, nil
}

// checkTarget looks at switch and instance id again, after the round has waited for the cloud.
func (r *round) checkTarget() error {
	latest := r.latestTarget(r.key)
	if latest == nil || latest.UID != r.target.UID || latest.InstanceID != r.target.InstanceID {
		return fmt.Errorf("the Rds is another one by now: %w", autopilot.ErrConflict)
	}
	if reason, _ := OffReason(latest, r.rap, cmp.Or(r.switches.of(r.key), r.lastSwitch)); reason != "" {
		return fmt.Errorf("autopilot was turned off meanwhile: %w", autopilot.ErrConflict)
	}
	return nil
}

// requeueAfter is when to look at this database next, unless an event comes first.
func (r *round) requeueAfter(soonest time.Duration) time.Duration {
	inst := r.rap.Status.Instance
	busy := inst == nil || inst.Status != autopilot.StatusActive && inst.Status != autopilot.StatusStorageFull // a full one may be full for days
	if len(r.rap.Status.Intents()) == 0 && !busy {
		return soonest
	}
	if soonest > 0 {
		return min(soonest, r.Recheck)
	}
	return r.Recheck
}

// warnOtherScalers warns once of the operator's own autopilot, which anybody can trigger.
func (r *round) warnOtherScalers() {
	if !r.target.OperatorAutopilot || !r.setWarned() {
		return
	}
	r.Recorder.Event(r.target, r.rap, autopilot.Event{Warning: true, Reason: eventOperator, Action: eventObserve, Note: "spec.endpoint is set: the operator's own autopilot is on as well, and acts on messages that nobody verifies. Clear spec.endpoint"})
}

// setWarned notes that people are warned, and reports whether they were not yet.
func (r *round) setWarned() (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.warned[r.target.UID]
	r.warned[r.target.UID] = true
	return !was
}

// emitEnded logs how changes ended, and emits an event for each.
func (r *round) emitEnded(ended []v1alpha1.Change) {
	for _, ch := range ended {
		r.log.Info("change ended", zap.String("kind", string(ch.Kind)), zap.String("by", string(ch.By)),
			zap.String("from", ch.From), zap.String("to", ch.To), zap.String("outcome", string(ch.Outcome)))
		r.Recorder.Event(r.target, r.rap, autopilot.Event{
			Warning: ch.Outcome != v1alpha1.OutcomeCompleted, Change: true, Reason: string(ch.Outcome), Action: string(ch.Kind),
			Note: autopilot.DescribeChange(ch),
		})
	}
}

// emitDecisions reports what was decided, and done: event, metric and log line with one reason code.
func (r *round) emitDecisions(news []autopilot.Decision) {
	for _, d := range news {
		r.meters.decisions.WithLabelValues(string(d.Metric), string(d.Action), string(d.Reason)).Inc()
		r.log.Info("decision", zap.String("metric", string(d.Metric)), zap.String("action", string(d.Action)),
			zap.String("reason", string(d.Reason)), zap.String("from", d.From), zap.String("to", d.To),
			zap.String("messageID", d.MessageID), zap.String("message", d.Message))
		e := autopilot.Event{Warning: d.Reason.IsWarning(), Reason: string(d.Reason), Action: string(d.Action), Note: d.Message}
		if d.Acts() {
			e.Reason, e.Change = string(d.Action), true
			if !d.Since.IsZero() && !r.episodeServed(d) {
				r.meters.alarmToPatch.Observe(r.Now().Sub(d.Since).Seconds())
			}
		}
		r.Recorder.Event(r.target, r.rap, e)
	}
}

// episodeServed reports whether the alarm had a change already: the latency is that of the first.
func (r *round) episodeServed(d autopilot.Decision) bool {
	return slices.ContainsFunc(r.rap.Status.Changes, func(ch v1alpha1.Change) bool {
		return slices.Contains(ch.Metrics, d.Metric) && ch.DecisionTime != nil && ch.DecisionTime.After(d.Since)
	})
}

// emitWarnings reports what people should know before it is too late; the status says by now that they were warned.
func (r *round) emitWarnings(warnings []autopilot.Warning) {
	for _, w := range warnings {
		r.log.Warn("warning", zap.String("reason", string(w.Reason)), zap.String("message", w.Message))
		r.Recorder.Event(r.target, r.rap, autopilot.Event{Warning: true, Reason: string(w.Reason), Action: eventObserve, Note: w.Message})
	}
}
