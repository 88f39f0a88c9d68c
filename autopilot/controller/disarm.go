// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// disarm removes the alarm objects from the cloud, then the finalizer. If the controller created the RdsAutopilot and
// its Rds is gone, disarm also deletes the RdsAutopilot, because it does not rely on the garbage collector.
func (r *round) disarm(ctx context.Context, reason, message string) error {
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
	if r.rap.DeletionTimestamp.IsZero() && owner(r.rap) != nil && (r.target == nil || isSuccessor(r.target, r.rap)) {
		if err := r.kube.DeleteAutopilot(ctx, r.rap); err != nil && !errors.Is(err, autopilot.ErrGone) {
			return fmt.Errorf("delete RdsAutopilot: %w", err)
		}
	}
	return nil
}

// storeOff stores that autopilot is off and which alarm objects remain in the cloud. It drops changes that have not
// started. One that may have started stays recorded: it counts for cooldown and budget once autopilot is on again.
func (r *round) storeOff(ctx context.Context, left v1alpha1.Alarms, reason, message string) error {
	r.keepHeld(nil, nil)
	return r.update(ctx, func(s *v1alpha1.Status) {
		s.Switch, s.Alarms, s.Deferred = r.lastSwitch, left, nil
		s.OverThresholdSince, s.Used = nil, nil // nobody reads the used space while autopilot is off
		autopilot.DropUnstarted(s, r.rap.Spec.Apply)
		s.Held = nil
		s.ObservedGeneration, s.EffectiveMode = r.rap.Generation, r.effectiveMode()
		autopilot.SetOff(s, reason, message, r.rap.Generation, r.now)
	})
}
