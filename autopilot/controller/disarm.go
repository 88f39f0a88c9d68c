// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/decide"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// disarm removes the alarm objects from the cloud, then the finalizer. If the controller created the RdsAutopilot and
// its Rds is gone, disarm also deletes the RdsAutopilot, because it does not rely on the garbage collector.
func (r *round) disarm(ctx context.Context, off autopilot.Off) error {
	reason, message := string(off.Reason), off.Message
	hasFinalizer := slices.Contains(r.rap.Finalizers, v1alpha1.Finalizer)
	if hasFinalizer {
		event := autopilot.Event{Reason: eventDisarmed, Action: "Remove",
			Note: message + ". Alarm rules, subscription and topic were removed"}
		if err := r.cloud.Remove(ctx, r.rap); err != nil {
			if r.rap.Annotations[v1alpha1.AbandonAnnotation] != "true" {
				return errors.Join(fmt.Errorf("disarm: %w", err), r.storeOff(ctx, r.rap.Status.Alarms, armingReason(err),
					fmt.Sprintf("%s, but the alarm rules, subscription or topic cannot be removed: %v. To leave them in place, annotate this object with %s=true", message, err, v1alpha1.AbandonAnnotation)))
			}
			event = autopilot.Event{Warning: true, Reason: eventAbandoned, Action: "Remove",
				Note: fmt.Sprintf("Leaving the remaining cloud resources in place, as requested by the annotation: %v", err)}
		}
		r.setEnsured(nil)
		r.kube.Event(r.target, r.rap, event)
	}
	isHeld := reason == string(autopilot.ReasonNotAllowed) && r.isNews(message)
	if err := r.storeOff(ctx, v1alpha1.Alarms{}, reason, message); err != nil {
		return err
	}
	if isHeld {
		r.warnHeld(reason, message)
	}
	if hasFinalizer {
		if err := r.kube.RemoveFinalizer(ctx, r.rap); err != nil && !errors.Is(err, autopilot.ErrGone) {
			return fmt.Errorf("remove the finalizer: %w", err)
		}
	}
	if r.rap.DeletionTimestamp.IsZero() && autopilot.Owner(r.rap) != nil &&
		(r.target == nil || autopilot.IsSuccessor(r.target, r.rap)) {
		if err := r.kube.DeleteAutopilot(ctx, r.rap); err != nil && !errors.Is(err, autopilot.ErrGone) {
			return fmt.Errorf("delete RdsAutopilot: %w", err)
		}
	}
	return nil
}

// storeOff stores that autopilot is off and which alarm objects remain in the cloud. It drops changes that have not
// started. One that may have started stays recorded: it counts for cooldown and budget once autopilot is on again. An
// alarm that is in force gets a last decision, because nobody checks it any more.
func (r *round) storeOff(ctx context.Context, left v1alpha1.Alarms, reason, message string) error {
	var news []autopilot.Decision
	err := r.update(ctx, func(s *v1alpha1.Status) {
		news = record.Decisions(s, r.lastDecisions(*s), r.now)
		s.Switch, s.Alarms, s.Deferred = r.lastSwitch, left, nil
		s.OverThresholdSince, s.Used, s.ReadOnly = nil, nil, nil // nobody reads while autopilot is off
		record.DropUnstarted(s, r.rap.Spec.Apply)
		s.Held = nil
		s.ObservedGeneration, s.EffectiveMode = r.rap.Generation, r.effectiveMode()
		record.SetOff(s, reason, message, r.rap.Generation, r.now)
	})
	if err == nil {
		r.emitDecisions(news)
	}
	return err
}

// lastDecisions returns the decisions on the alarms that were in force at the last check.
func (r *round) lastDecisions(s v1alpha1.Status) []autopilot.Decision {
	c := autopilot.Case{Now: r.now, Spec: r.rap.Spec, Generation: r.rap.Generation, Off: r.off(), Status: s}
	for _, rule := range s.Alarms.Rules {
		if rule.State == v1alpha1.StateAlarm && rule.StateTime != nil {
			c.Alarms = append(c.Alarms, autopilot.Alarm{
				Metric: rule.Metric, State: rule.State, StateTime: rule.StateTime.Time, Signal: autopilot.SignalFor(s.Intake, rule),
			})
		}
	}
	known := func(context.Context, *autopilot.Case, autopilot.Fact) error { return nil } // autopilot is off: no guard asks for more
	return decide.Walk(context.Background(), &c, known).Decisions
}
