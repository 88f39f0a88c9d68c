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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// Reasons of events that are no decisions.
const (
	eventEnabled   = "Enabled"
	eventDisarmed  = "Disarmed"
	eventAbandoned = "Abandoned"
	eventOperator  = "OperatorAutopilot"
	eventObserve   = "Observe" // the action of events about what others do, and of warnings
)

// round is one look at one database.
type round struct {
	*Controller
	key        Key
	target     *autopilot.Target      // nil: there is neither an Rds nor spec.instanceID
	rap        *v1alpha1.RdsAutopilot // as last read or written; not altered
	lastSwitch v1alpha1.Switch        // the last value of spec.autopilot, now or before
	now        time.Time
	log        *zap.Logger

	notBefore time.Time // how new what is read of the cloud must be
	swept     bool      // a sweep asks for it
}

// newRound reads both objects from the cache. It is false where there is no RdsAutopilot.
func (c *Controller) newRound(key Key) (r *round, ok bool) {
	r = &round{
		Controller: c, key: key, target: c.latestTarget(key), now: c.Now(),
		log: c.Log.With(zap.String("namespace", key.Namespace), zap.String("name", key.Name)),
	}
	if r.target != nil {
		r.lastSwitch = cmp.Or(r.target.Switch, c.switches.of(key))
	}
	if r.rap, ok = c.Cache.Autopilot(key.Namespace, key.Name); !ok {
		return r, false
	}
	r.limiter.observe(r.rap)
	r.lastSwitch = cmp.Or(r.lastSwitch, r.rap.Status.Switch)
	return r, true
}

// latestTarget returns nil where there is no Rds.
func (c *Controller) latestTarget(key Key) *autopilot.Target {
	t := c.Cache.Target(key.Namespace, key.Name)
	if t == nil {
		return nil
	}
	return c.applied.Newest(key, t)
}

// reconcile decides on one database and says when to look again. What concerns its alarms is left to arm.
func (c *Controller) reconcile(ctx context.Context, key Key) (requeueAfter time.Duration, err error) {
	begin, sweep := c.decideMarks.take(key)
	defer func() {
		if sweep && errors.Is(err, autopilot.ErrConflict) { // what the sweep has read of the cloud is new enough for the next try
			c.decideMarks.set(key, begin)
		}
	}()
	r, ok := c.newRound(key)
	if !ok {
		if r.target != nil && !r.target.Deleting && r.lastSwitch == v1alpha1.SwitchOn {
			return 0, r.create(ctx)
		}
		return 0, nil
	}
	if r.notBefore, r.swept = begin, sweep; !sweep {
		r.notBefore = r.now.Add(-c.Cloud.ListedFor())
	}
	if reason, _ := r.off(); reason != "" {
		c.enqueueArming(key)
		return 0, nil
	}
	return r.reconcileEnabled(ctx)
}

func (r *round) create(ctx context.Context) error {
	if r.Mode == v1alpha1.ModeOff {
		return nil
	}
	if err := r.Store.CreateAutopilot(ctx, r.target); err != nil {
		return fmt.Errorf("create RdsAutopilot: %w", err)
	}
	r.Recorder.Event(r.target, nil, autopilot.Event{Reason: eventEnabled, Action: "Create", Note: "Autopilot is on: set spec.autopilot to false to turn it off; leaving it out does not"})
	return nil
}

// off says why nothing of this database should exist in the cloud, if so.
func (r *round) off() (reason, message string) {
	if reason, message = OffReason(r.target, r.rap, r.lastSwitch); reason != "" {
		return reason, message
	}
	if r.effectiveMode() == v1alpha1.ModeOff {
		return string(autopilot.ReasonNotEnabled), "The mode is Off"
	}
	if message = r.Allowed.Refuses(r.rap.Spec, r.target); message != "" {
		return autopilot.NotAllowed, message
	}
	return "", ""
}

// OffReason says why nothing is to be done for a database whatever the mode, if so. lastSwitch is the last value of spec.autopilot,
// which counts where the target, which may be nil, has none now.
func OffReason(t *autopilot.Target, a *v1alpha1.RdsAutopilot, lastSwitch v1alpha1.Switch) (reason, message string) {
	if t != nil {
		lastSwitch = cmp.Or(t.Switch, lastSwitch)
	}
	switch {
	case !a.DeletionTimestamp.IsZero():
		return string(autopilot.ReasonNotEnabled), "The RdsAutopilot is being deleted"
	case t == nil:
		return string(autopilot.ReasonInstanceUnknown), "There is no Rds with this namespace and name"
	case t.NoRds: // that it exists is the switch
		return "", ""
	case a.Spec.InstanceID != "" && t.InstanceID != "" && a.Spec.InstanceID != t.InstanceID:
		return string(autopilot.ReasonInstanceUnknown), "spec.instanceID is not the id in status.id of the Rds with this namespace and name: remove the one that is wrong"
	case t.Deleting:
		return string(autopilot.ReasonNotEnabled), "The Rds is being deleted"
	case isSuccessor(t, a):
		return string(autopilot.ReasonInstanceUnknown), "The Rds of this autopilot was deleted; another one has its name"
	case lastSwitch == v1alpha1.SwitchOff:
		return string(autopilot.ReasonNotEnabled), "spec.autopilot of the Rds said false; true turns it on again"
	}
	return "", ""
}

func (r *round) effectiveMode() v1alpha1.Mode { return autopilot.NarrowerMode(r.rap.Spec.Mode, r.Mode) }

// owner is the Rds that this autopilot was made for by us; a person's has none.
func owner(a *v1alpha1.RdsAutopilot) *metav1.OwnerReference {
	i := slices.IndexFunc(a.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == otcv1.Kind })
	if i < 0 {
		return nil
	}
	return &a.OwnerReferences[i]
}

// isSuccessor reports whether the Rds has the name, but is not the one that this autopilot was made for.
func isSuccessor(t *autopilot.Target, a *v1alpha1.RdsAutopilot) bool {
	o := owner(a)
	return o != nil && t != nil && !t.NoRds && o.UID != t.UID
}

// write stores the status, if it differs, on top of what was read: a conflict means that this round decided on old news.
func (r *round) write(ctx context.Context, next v1alpha1.Status) error {
	stored, err := r.Store.WriteStatus(ctx, r.rap, next)
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	r.setAutopilot(stored)
	return nil
}

// storeIntent stores the status with an intent before anything is changed by it. One that is stored already must be the
// newest: a conflict means that this round decided on old news.
func (r *round) storeIntent(ctx context.Context, next v1alpha1.Status) error {
	read := r.rap.ResourceVersion
	if err := r.write(ctx, next); err != nil || r.rap.ResourceVersion != read {
		return err
	}
	live, err := r.Store.LiveAutopilot(ctx, r.key.Namespace, r.key.Name)
	if err != nil {
		return fmt.Errorf("read the RdsAutopilot again: %w", err)
	}
	if live.UID != r.rap.UID || live.ResourceVersion != r.rap.ResourceVersion {
		return fmt.Errorf("the RdsAutopilot was written meanwhile: %w", autopilot.ErrConflict)
	}
	return nil
}

// update changes the status on top of whatever is stored by now: decisions go on while the cloud is asked about alarms.
func (r *round) update(ctx context.Context, change func(*v1alpha1.Status)) error {
	for {
		next := r.rap.Status.Copy()
		change(&next)
		err := r.write(ctx, next)
		if !errors.Is(err, autopilot.ErrConflict) {
			return err
		}
		live, err := r.Store.LiveAutopilot(ctx, r.key.Namespace, r.key.Name)
		if err != nil {
			return fmt.Errorf("read the RdsAutopilot again: %w", err)
		}
		if live.UID != r.rap.UID {
			return fmt.Errorf("read the RdsAutopilot again: another one has its name: %w", autopilot.ErrGone)
		}
		r.rap = live
	}
}

func (r *round) setAutopilot(a *v1alpha1.RdsAutopilot) {
	r.rap = a
	r.limiter.observe(a)
}
