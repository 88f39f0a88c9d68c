// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/autopilot/decide"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// reconcileEnabled is the round of a database whose autopilot is on: observe, follow up, walk through the guards, store
// the change with the records, request it. If the API server has accepted the patch, or nobody has answered, nothing more
// is written: the next round stores what it sees. Arming follows in a queue of its own.
func (r *round) reconcileEnabled(ctx context.Context) (time.Duration, error) {
	r.warnOtherScalers()
	jobs := r.readJobs(ctx)
	c, err := r.observe(ctx)
	if err != nil {
		return 0, errors.Join(err, r.recordUnreachable(ctx, err))
	}
	c.Jobs, c.IsSpecLive = jobs, r.isTargetLive
	if patched := r.controller.recall(r.key).patched; patched != nil {
		c.Accepted = patched.RequestTime
	}
	followed, readErr := r.follow(ctx, &c)
	verdict := decide.Walk(ctx, &c, r.facts().Read)
	verdict.EndTime = r.options.Now()
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
	if err := r.write(ctx, c.Status); err != nil {
		return 0, errors.Join(err, readErr)
	}
	r.emitEnded(followed.Ended)
	r.emitEnded(outcome.Ended)
	acting, others := split(outcome.News)
	r.emitDecisions(others)
	r.emitWarnings(outcome.Warnings)
	if armingDue {
		r.controller.enqueueArming(r.key)
	}
	again := outcome.RequeueAfter
	if outcome.Attempt != nil {
		all, _ := split(verdict.Decisions)
		a := record.Answer{Attempt: *outcome.Attempt, Before: outcome.Before, Overtaken: outcome.Overtaken, Acting: all, News: acting}
		next, requestErr := r.request(ctx, c, a)
		verdict.RequeueIn(next)
		again, readErr = verdict.RequeueAfter, errors.Join(readErr, requestErr)
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

func (r *round) recordUnreachable(ctx context.Context, err error) error {
	next := r.rap.Status.Copy()
	next.ObservedGeneration, next.EffectiveMode = r.rap.Generation, r.effectiveMode()
	r.notArmed(&next, autopilot.CloudUnreachable, "The cloud does not answer: "+err.Error())
	return r.write(ctx, next)
}

func (r *round) requeueAfter(soonest time.Duration) time.Duration {
	inst := r.rap.Status.Instance
	busy := inst == nil || inst.Status != autopilot.StatusActive &&
		inst.Status != autopilot.StatusStorageFull // a full instance may stay full for days
	if !busy && !change.AnyPending(r.rap.Status.Changes) {
		return soonest
	}
	return min(cmp.Or(soonest, r.options.Recheck), r.options.Recheck)
}

// warnOtherScalers emits one event if the operator's own autopilot is on, which anybody can trigger.
func (r *round) warnOtherScalers() {
	if !r.target.OperatorAutopilot || r.controller.recall(r.key).warned == r.target.UID {
		return
	}
	r.controller.remember(r.key, func(m *memory) { m.warned = r.target.UID })
	r.kube.Event(r.target, r.rap, autopilot.Event{
		Warning: true, Reason: eventOperator, Action: eventObserve,
		Note: "spec.endpoint is set, so the operator's own autopilot is on as well. It acts on unverified messages. Clear spec.endpoint",
	})
}

func (r *round) emitEnded(ended []v1alpha1.Change) {
	for _, ch := range ended {
		r.log.Info("change ended", zap.String("kind", string(ch.Kind)), zap.String("by", string(ch.By)),
			zap.String("from", ch.From), zap.String("to", ch.To), zap.String("state", string(ch.State)))
		r.kube.Event(r.target, r.rap, autopilot.Event{
			Warning: ch.State != v1alpha1.StateCompleted, Change: true, Reason: string(ch.State), Action: string(ch.Kind),
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
		_, counts := change.StartOf(ch)
		return counts && !change.IsPending(ch) && slices.Contains(ch.Metrics, d.Metric) && ch.RequestTime.After(d.Since)
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
