// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Reasons of events that report no decision.
const (
	eventEnabled  = "Enabled"
	eventDisarmed = "Disarmed"
	eventOperator = "OperatorAutopilot"
	eventObserve  = "Observe" // the action of warnings, and of events about what other writers do
)

// round is one check of one database.
type round struct {
	controller *Controller
	options    Options // of the controller
	kube       Kubernetes
	cloud      Cloud

	key    Key
	target *autopilot.Target      // nil if there is neither an Rds nor spec.instanceID
	rap    *v1alpha1.RdsAutopilot // as last read or written; the round must not modify it
	now    time.Time
	log    *zap.Logger

	notBefore time.Time // ignore what was read from the cloud before this time
	isSweep   bool      // a sweep requested this round, and perhaps something else as well

	isTargetLive bool // the round has read the target from the API server
	isDeciding   bool // only such rounds write changes
}

// newRound reads both objects from the cache. It returns false if there is no RdsAutopilot.
func (c *Controller) newRound(key Key) (r *round, ok bool) {
	r = &round{
		controller: c, options: c.options, kube: c.options.Kube, cloud: c.options.Cloud,
		key: key, target: c.options.Kube.Target(key.Namespace, key.Name), now: c.options.Now(),
		log: c.options.Log.With(zap.String("namespace", key.Namespace), zap.String("name", key.Name)),
	}
	r.rap, ok = c.options.Kube.Autopilot(key.Namespace, key.Name)
	return r, ok
}

// reconcile decides about one database and returns when to check it again. It leaves its alarms to arm. It may decide
// on an old cache: every write carries the version that was read, so the API server refuses it.
func (c *Controller) reconcile(ctx context.Context, key Key) (requeueAfter time.Duration, err error) {
	taken := c.decideMarks.take(key)
	r, ok := c.newRound(key)
	r.isDeciding = true
	defer func() {
		c.limiter.release(key)
		if err != nil {
			c.decideMarks.restore(key, taken, r.notBefore, err)
		}
		if errors.Is(err, autopilot.ErrConflict) {
			c.remember(key, func(m *memory) { m.stale = true })
		}
	}()
	if ok && c.takeStale(key) {
		if r.rap, err = c.options.Kube.LiveAutopilot(ctx, key.Namespace, key.Name); err != nil {
			return 0, fmt.Errorf("read the RdsAutopilot after a conflict: %w", err)
		}
	}
	if !ok {
		if r.target != nil && !r.target.Deleting && r.explicit(r.target, v1alpha1.Switch{}) == v1alpha1.SwitchOn {
			return 0, r.create(ctx)
		}
		return 0, nil
	}
	r.notBefore, r.isSweep = taken.begun, taken.isSweep
	if !taken.isSweep || taken.isNews {
		r.notBefore = r.now.Add(-c.options.Cloud.ListMaxAge())
	}
	if err := r.readCurrentTarget(ctx); err != nil {
		return 0, err
	}
	if err := r.storeSwitch(ctx); err != nil {
		return 0, err
	}
	if r.off() != (autopilot.Off{}) {
		c.enqueueArming(key)
		return 0, nil
	}
	return r.reconcileEnabled(ctx)
}

// takeStale reports, once, whether the last round ended in a conflict. In a storm the watch lags by seconds, and each
// retry with the old cache would be another conflict.
func (c *Controller) takeStale(key Key) (was bool) {
	c.remember(key, func(m *memory) { was, m.stale = m.stale, false })
	return was
}

// readCurrentTarget reads the Rds from the API server if the cache has none, or while a change of ours is pending. The
// cache may still have the Rds as it was before our patch, and the change would look lost.
func (r *round) readCurrentTarget(ctx context.Context) error {
	if r.target == nil {
		return r.readMissingTarget(ctx)
	}
	if r.target.NoRds || !change.AnyPending(r.rap.Status.Changes) {
		return nil
	}
	r.isTargetLive = true
	return r.readTarget(ctx)
}

func (r *round) readTarget(ctx context.Context) error {
	live, err := r.kube.LiveTarget(ctx, r.key.Namespace, r.key.Name)
	if err != nil {
		return fmt.Errorf("read the Rds: %w", err)
	}
	r.target = live
	return nil
}

// explicit returns the last explicit value of spec.autopilot of a target, given the stored one.
func (r *round) explicit(t *autopilot.Target, stored v1alpha1.Switch) v1alpha1.SwitchValue {
	if t == nil {
		return ""
	}
	return t.Explicit(r.controller.switches.of(r.key), stored)
}

// storeSwitch stores a new explicit value of spec.autopilot before anything else happens. Only this function writes it.
func (r *round) storeSwitch(ctx context.Context) error {
	value := r.explicit(r.target, r.rap.Status.Switch)
	if value == "" || r.rap.Status.Switch == (v1alpha1.Switch{Value: value, UID: r.target.UID}) {
		return nil
	}
	next := r.rap.Status.Copy()
	next.Switch = v1alpha1.Switch{Value: value, UID: r.target.UID}
	if err := r.write(ctx, next); err != nil {
		return err
	}
	r.controller.switches.stored(r.key, next.Switch)
	return nil
}

func (r *round) create(ctx context.Context) error {
	if r.options.Mode == v1alpha1.ModeOff {
		return nil
	}
	if err := r.kube.CreateAutopilot(ctx, r.target); err != nil {
		return fmt.Errorf("create RdsAutopilot: %w", err)
	}
	r.kube.Event(r.target, nil, autopilot.Event{
		Reason: eventEnabled, Action: "Create",
		Note: "Autopilot is on. To turn it off, set spec.autopilot to false; removing the field does not",
	})
	return nil
}

// off returns why nothing of this database should exist in the cloud; the zero value means that its autopilot is on.
func (r *round) off() autopilot.Off { return r.offFor(r.target, r.rap) }

// offFor is off for objects that were read again.
func (r *round) offFor(t *autopilot.Target, a *v1alpha1.RdsAutopilot) autopilot.Off {
	return autopilot.OffFor(t, a, r.explicit(t, a.Status.Switch), r.options.Mode, r.options.Allowed)
}

func (r *round) effectiveMode() v1alpha1.Mode {
	return autopilot.NarrowerMode(r.rap.Spec.Mode, r.options.Mode)
}

// write stores the status if it differs from the one that was read, and reports that the database became armed, by its
// rules or by the confirmed subscription. It returns autopilot.ErrConflict if the round has decided on an old version.
func (r *round) write(ctx context.Context, next v1alpha1.Status) error {
	stored, err := r.kube.WriteStatus(ctx, r.rap, next)
	if err != nil {
		return fmt.Errorf("%w: %w", errStatus, err)
	}
	if r.isDeciding && stored.ResourceVersion != r.rap.ResourceVersion {
		r.controller.limiter.store(stored)
	}
	was := meta.IsStatusConditionTrue(r.rap.Status.Conditions, v1alpha1.ConditionArmed)
	r.rap = stored
	if now := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionArmed); now != nil && now.Status == "True" && !was {
		r.log.Info("armed", zap.String("topic", r.controller.topicURN()))
		r.kube.Event(r.target, stored, autopilot.Event{Reason: eventArmed, Action: "Ensure", Note: now.Message})
	}
	return nil
}

// readAgain returns the RdsAutopilot as the API server has it. It may be another one of that name.
func (r *round) readAgain(ctx context.Context) (*v1alpha1.RdsAutopilot, error) {
	live, err := r.kube.LiveAutopilot(ctx, r.key.Namespace, r.key.Name)
	if err != nil {
		return nil, fmt.Errorf("read the RdsAutopilot again: %w", err)
	}
	return live, nil
}

// update changes the status on top of the newest stored version, because decisions are stored while arming waits for the
// cloud. It returns autopilot.ErrConflict if the policy or the switch has changed: then the caller must decide again.
func (r *round) update(ctx context.Context, change func(*v1alpha1.Status)) error {
	read := r.rap
	return r.updateIf(ctx, change, func(live *v1alpha1.RdsAutopilot) bool {
		return live.Generation == read.Generation && live.Status.Switch == read.Status.Switch
	})
}

// updateIf is update as long as the newest version is one to which the change applies.
func (r *round) updateIf(ctx context.Context, change func(*v1alpha1.Status), applies func(*v1alpha1.RdsAutopilot) bool) error {
	isRetry, isOld := false, false
	err := autopilot.RetryConflict(ctx, func() error {
		if isRetry {
			live, err := r.readAgain(ctx)
			if err != nil {
				return err
			}
			if live.UID != r.rap.UID {
				return fmt.Errorf("read the RdsAutopilot again: another one has its name: %w", autopilot.ErrGone)
			}
			if isOld = !applies(live); isOld {
				return nil
			}
			r.rap = live
		}
		isRetry = true
		next := r.rap.Status.Copy()
		change(&next)
		return r.write(ctx, next)
	})
	if err == nil && isOld {
		err = fmt.Errorf("the policy or the switch has changed: %w", autopilot.ErrConflict)
	}
	return err
}
