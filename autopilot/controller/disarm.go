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

// disarm removes what exists in the cloud, then the finalizer, then the autopilot itself where it was ours and its Rds
// is gone: nothing here relies on a garbage collector.
func (r *round) disarm(ctx context.Context, reason, message string) error {
	ours := slices.Contains(r.rap.Finalizers, v1alpha1.Finalizer)
	if ours {
		event := autopilot.Event{Reason: eventDisarmed, Action: "Remove", Note: message + ": alarm rules, subscription and topic are removed"}
		if err := r.Arming.Remove(ctx, r.rap, r.rap.Status.Alarms); err != nil {
			if r.rap.Annotations[v1alpha1.AbandonAnnotation] != "true" {
				return errors.Join(fmt.Errorf("disarm: %w", err), r.storeOff(ctx, r.rap.Status.Alarms, armingReason(err),
					fmt.Sprintf("%s, but it cannot be disarmed: %v. To give up on the cloud, annotate it with %s=true", message, err, v1alpha1.AbandonAnnotation)))
			}
			event = autopilot.Event{Warning: true, Reason: eventAbandoned, Action: "Remove", Note: fmt.Sprintf("What is left in the cloud is abandoned, as asked for: %v", err)}
		}
		r.forget(r.key)
		r.Recorder.Event(r.target, r.rap, event)
	}
	if err := r.storeOff(ctx, v1alpha1.Alarms{}, reason, message); err != nil {
		return err
	}
	if ours {
		if err := r.Store.RemoveFinalizer(ctx, r.rap); err != nil && !errors.Is(err, autopilot.ErrGone) {
			return fmt.Errorf("remove the finalizer: %w", err)
		}
	}
	if r.rap.DeletionTimestamp.IsZero() && owner(r.rap) != nil && (r.target == nil || isSuccessor(r.target, r.rap)) {
		if err := r.Store.DeleteAutopilot(ctx, r.rap); err != nil && !errors.Is(err, autopilot.ErrGone) {
			return fmt.Errorf("delete RdsAutopilot: %w", err)
		}
	}
	return nil
}

// storeOff records that autopilot is off and what is left in the cloud. Nothing of ours is under way any more.
func (r *round) storeOff(ctx context.Context, left v1alpha1.Alarms, reason, message string) error {
	return r.update(ctx, func(s *v1alpha1.Status) {
		s.Switch, s.Alarms, s.Pending, s.Overtaken, s.Deferred = r.lastSwitch, left, nil, nil, nil
		s.ObservedGeneration = r.rap.Generation
		autopilot.SetOff(s, reason, message, r.rap.Generation, r.now)
	})
}
