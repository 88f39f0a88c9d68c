// SPDX-License-Identifier: Apache-2.0

package controller

import (
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
// the change with the records, request it. If the API server has accepted the patch, nothing more is written: the next
// round stores what it sees. Arming follows in a queue of its own.
func (r *round) reconcileEnabled(ctx context.Context) (time.Duration, error) {
	r.warnOtherScalers()
	jobs := r.readJobs(ctx)
	c, err := r.observe(ctx)
	if err != nil {
		return 0, errors.Join(err, r.recordUnreachable(ctx, err))
	}
	c.Jobs, c.Accepted = jobs, r.controller.recall(r.key).patch
	followed, readErr := r.follow(&c)
	verdict := decide.Walk(ctx, &c, r.facts().Read)
	readErr = errors.Join(readErr, c.ReadError())
	if verdict.Change == nil { // no read may delay a growth
		r.readSizes(ctx, &c)
	}
	outcome := record.Outcome(c, verdict)
	c.Status = outcome.Status
	armingDue := r.armingDue(c)
	if armingDue && !record.IsSwitchedOff(c.Status) { // arm sets Armed
		record.SetReady(&c.Status, readErr != nil, r.rap.Generation, r.now)
	} else {
		r.setArmed(&c.Status, readErr != nil)
	}
	if err := r.storeRound(ctx, c.Status, verdict.Change != nil); err != nil {
		return 0, errors.Join(err, readErr)
	}
	r.emitEnded(followed.Ended)
	for _, ch := range followed.Found {
		r.emitDecisions(record.DecisionsFor(c, ch))
	}
	acting, others := split(outcome.News)
	r.emitDecisions(others)
	r.emitWarnings(outcome.Warnings)
	if armingDue {
		r.controller.enqueueArming(r.key)
	}
	again := outcome.RequeueAfter
	if verdict.Change != nil {
		var requestErr error
		again, requestErr = r.request(ctx, c, *verdict.Change, acting, again)
		readErr = errors.Join(readErr, requestErr)
	}
	return r.requeueAfter(again), readErr
}

func split(news []autopilot.Decision) (acting, others []autopilot.Decision) {
	for _, d := range news {
		if d.Acts() {
			acting = append(acting, d)
		} else {
			others = append(others, d)
		}
	}
	return acting, others
}

// storeRound stores the status of the round. If it has a change that is to be requested, the version of the
// RdsAutopilot must be that of the API server, even if nothing is written.
func (r *round) storeRound(ctx context.Context, next v1alpha1.Status, isActing bool) error {
	read := r.rap.ResourceVersion
	if err := r.write(ctx, next); err != nil {
		return err
	}
	if isActing && r.rap.ResourceVersion == read {
		return r.confirmVersion(ctx)
	}
	return nil
}

func (r *round) recordUnreachable(ctx context.Context, err error) error {
	next := r.rap.Status.Copy()
	next.ObservedGeneration, next.EffectiveMode = r.rap.Generation, r.effectiveMode()
	r.notArmed(&next, autopilot.CloudUnreachable, "The cloud does not answer: "+err.Error())
	return r.write(ctx, next)
}

// patchRds requests the change from the operator, by writing the size or flavor into the spec of the Rds. If there is
// no Rds, or the Rds requests the change already, it does nothing. It returns the answer of the API server if that is
// anything but an acceptance.
func (r *round) patchRds(ctx context.Context, ch v1alpha1.Change) (*record.Answer, error) {
	if r.target.NoRds || r.target.Wanted.Includes(ch) {
		return nil, nil
	}
	if err := r.confirmTarget(ctx); err != nil {
		return nil, err
	}
	ch.RequestTime = autopilot.Micro(r.options.Now())
	r.controller.remember(r.key, func(m *memory) { m.patch = &ch }) // the watch event may come before the answer
	stored, err := r.kube.PatchRds(ctx, r.target, ch)
	if err == nil && stored.Wanted.Matches(ch) {
		r.target = stored
		return nil, nil
	}
	r.controller.remember(r.key, func(m *memory) { m.patch = nil })
	a := &record.Answer{Kind: ch.Kind, To: ch.To, Reason: autopilot.ReasonContested}
	if refusal, refused := errors.AsType[*autopilot.RefusedError](err); refused {
		a.Reason, a.Message = autopilot.ReasonRefused, refusal.Message
	} else if err != nil {
		return nil, fmt.Errorf("patch Rds: %w", err)
	}
	return a, nil
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
	if off := r.offFor(live, r.rap); off.Reason != "" {
		return fmt.Errorf("autopilot was turned off: %w", autopilot.ErrConflict)
	}
	return nil
}

func (r *round) requeueAfter(soonest time.Duration) time.Duration {
	inst := r.rap.Status.Instance
	busy := inst == nil || inst.Status != autopilot.StatusActive &&
		inst.Status != autopilot.StatusStorageFull // a full instance may stay full for days
	changing := slices.ContainsFunc(r.rap.Status.PendingChanges(), func(ch *v1alpha1.Change) bool {
		progress, _ := autopilot.RecordedProgress(*ch, r.rap.Spec.Apply)
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
		return slices.Contains(ch.Metrics, d.Metric) && !ch.IsPending() && ch.IsDecided() && ch.DecisionTime.After(d.Since)
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
