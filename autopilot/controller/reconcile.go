package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
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
)

// round is one look at one database.
type round struct {
	*Controller
	key  Key
	rds  *otcv1.Rds             // nil: there is none
	rap  *v1alpha1.RdsAutopilot // as last read or written
	next v1alpha1.Status        // as it should be written
	now  time.Time
	log  *zap.Logger

	observed  int64     // generation that was last observed, as read
	notBefore time.Time // how new a listing must be to arm by it
	decidedBy time.Time // how new one must be to decide by it
	sweep     bool      // nothing happened; this is the look that needs no reason
}

// reconcile brings one database up to date and says when to look again.
func (c *Controller) reconcile(ctx context.Context, key Key) (again time.Duration, err error) {
	r := &round{Controller: c, key: key, now: c.Now(), log: c.Log.With(zap.String("namespace", key.Namespace), zap.String("name", key.Name))}
	r.notBefore, r.sweep = c.taken(key)
	r.decidedBy = r.notBefore
	if since := r.now.Add(-c.Cloud.ListedFor()); !r.sweep && since.Before(r.decidedBy) {
		r.decidedBy = since
	}
	var known bool
	if r.rds, known = c.Cluster.Rds(key.Namespace, key.Name); !known {
		r.rds = nil
	}
	if r.rap, known = c.Cluster.Autopilot(key.Namespace, key.Name); !known {
		if r.rds != nil && r.rds.DeletionTimestamp.IsZero() && r.said() == v1alpha1.SwitchOn {
			return 0, r.create(ctx)
		}
		return 0, nil
	}
	r.next = *r.rap.Status.DeepCopy()
	r.observed = r.next.ObservedGeneration
	if said := r.said(); said != "" {
		r.next.Switch = said
	}
	if reason, message := r.off(); reason != "" {
		return 0, r.disarm(ctx, reason, message)
	}
	return r.fly(ctx)
}

// said is the last word of spec.autopilot: what it says now, else what it said and nobody acted on. Absence is no word.
func (r *round) said() v1alpha1.Switch {
	if r.rds == nil {
		return ""
	}
	if now := spoken(r.rds); now != "" {
		return now
	}
	return r.words.of(r.key)
}

func (r *round) create(ctx context.Context) error {
	if r.Mode == v1alpha1.ModeOff {
		return nil
	}
	if err := r.Cluster.CreateAutopilot(ctx, r.rds); err != nil {
		return fmt.Errorf("create RdsAutopilot: %w", err)
	}
	r.Cluster.Event(r.rds, nil, Event{Reason: eventEnabled, Action: "Create", Note: "Autopilot is on: set spec.autopilot to false to turn it off; leaving it out does not"})
	return nil
}

// off says why nothing of this database should exist in the cloud, if so.
func (r *round) off() (reason, message string) {
	if reason, message = Off(r.rds, r.rap, r.next.Switch); reason == "" && r.mode() == v1alpha1.ModeOff {
		return string(autopilot.ReasonNotEnabled), "The mode is Off"
	}
	return reason, message
}

// Off says why nothing is to be done for a database whatever the mode, if so. heard is the last word of spec.autopilot,
// for when the Rds, which may be nil, says none now.
func Off(rds *otcv1.Rds, a *v1alpha1.RdsAutopilot, heard v1alpha1.Switch) (reason, message string) {
	if rds != nil && spoken(rds) != "" {
		heard = spoken(rds)
	}
	switch {
	case !a.DeletionTimestamp.IsZero():
		return string(autopilot.ReasonNotEnabled), "The RdsAutopilot is being deleted"
	case rds == nil:
		return string(autopilot.ReasonInstanceUnknown), "There is no Rds with this namespace and name"
	case !rds.DeletionTimestamp.IsZero():
		return string(autopilot.ReasonNotEnabled), "The Rds is being deleted"
	case successor(rds, a):
		return string(autopilot.ReasonInstanceUnknown), "The Rds of this autopilot was deleted; another one has its name"
	case heard == v1alpha1.SwitchOff:
		return string(autopilot.ReasonNotEnabled), "spec.autopilot of the Rds said false; true turns it on again"
	}
	return "", ""
}

func (r *round) mode() v1alpha1.Mode { return autopilot.Narrower(r.rap.Spec.Mode, r.Mode) }

// owner is the Rds that this autopilot was made for by us; a person's has none.
func owner(a *v1alpha1.RdsAutopilot) *metav1.OwnerReference {
	i := slices.IndexFunc(a.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == otcv1.Kind })
	if i < 0 {
		return nil
	}
	return &a.OwnerReferences[i]
}

// successor reports whether the Rds has the name, but is not the one that this autopilot was made for.
func successor(rds *otcv1.Rds, a *v1alpha1.RdsAutopilot) bool {
	o := owner(a)
	return o != nil && rds != nil && o.UID != rds.UID
}

// disarm removes what exists in the cloud, then the finalizer, then the autopilot itself where it was ours and its Rds
// is gone: nothing here relies on a garbage collector.
func (r *round) disarm(ctx context.Context, reason, message string) error {
	ours := slices.Contains(r.rap.Finalizers, v1alpha1.Finalizer)
	if ours {
		told := Event{Reason: eventDisarmed, Action: "Remove", Note: message + ": alarm rules, subscription and topic are removed"}
		if err := r.Arming.Remove(ctx, r.rap, r.next.Alarms); err != nil {
			if r.rap.Annotations[v1alpha1.AbandonAnnotation] != "true" {
				return errors.Join(fmt.Errorf("disarm: %w", err), r.notArmed(ctx, armingReason(err),
					fmt.Sprintf("%s, but it cannot be disarmed: %v. To give up on the cloud, annotate it with %s=true", message, err, v1alpha1.AbandonAnnotation)))
			}
			told = Event{Warning: true, Reason: eventAbandoned, Action: "Remove", Note: fmt.Sprintf("What is left in the cloud is abandoned, as asked for: %v", err)}
		}
		r.forget(r.key)
		r.Cluster.Event(r.rds, r.rap, told)
	}
	r.next.Alarms, r.next.Pending, r.next.Overtaken, r.next.Deferred = v1alpha1.Alarms{}, nil, nil, nil
	if err := r.notArmed(ctx, reason, message); err != nil {
		return err
	}
	if ours {
		if err := r.Cluster.RemoveFinalizer(ctx, r.rap); err != nil && !errors.Is(err, autopilot.ErrGone) {
			return fmt.Errorf("remove the finalizer: %w", err)
		}
	}
	if r.rap.DeletionTimestamp.IsZero() && owner(r.rap) != nil && (r.rds == nil || successor(r.rds, r.rap)) {
		if err := r.Cluster.DeleteAutopilot(ctx, r.rap); err != nil && !errors.Is(err, autopilot.ErrGone) {
			return fmt.Errorf("delete RdsAutopilot: %w", err)
		}
	}
	return nil
}

func (r *round) notArmed(ctx context.Context, reason, message string) error {
	autopilot.SetCondition(&r.next, v1alpha1.ConditionArmed, false, reason, message, r.rap.Generation, r.now)
	autopilot.SetProgressing(&r.next, r.rap.Generation, r.now)
	r.next.ObservedGeneration = r.rap.Generation
	return r.write(ctx)
}

// write stores the status, if it differs.
func (r *round) write(ctx context.Context) error {
	if equality.Semantic.DeepEqual(r.rap.Status, r.next) {
		return nil
	}
	stored, err := r.Cluster.WriteStatus(ctx, r.rap, r.next)
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	r.rap = stored
	r.next = *stored.Status.DeepCopy()
	return nil
}
