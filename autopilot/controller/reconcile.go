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
	eventOperator  = "OperatorAutopilot"
	eventObserve   = "Observe" // the action of events about what others do, and of warnings
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

	notBefore time.Time // how new what is read of the cloud must be
}

// begin reads both objects from the cache. It is false where there is no RdsAutopilot.
func (c *Controller) begin(key Key) (r *round, ok bool) {
	r = &round{Controller: c, key: key, now: c.Now(), log: c.Log.With(zap.String("namespace", key.Namespace), zap.String("name", key.Name))}
	if r.rds, ok = c.latestRds(key); !ok {
		r.rds = nil
	}
	if r.rap, ok = c.Cluster.Autopilot(key.Namespace, key.Name); !ok {
		return r, false
	}
	r.rap = c.writtenRap.newest(key, r.rap)
	c.limiter.observe(r.rap)
	r.next = *r.rap.Status.DeepCopy()
	return r, true
}

func (c *Controller) latestRds(key Key) (*otcv1.Rds, bool) {
	rds, ok := c.Cluster.Rds(key.Namespace, key.Name)
	if !ok {
		return nil, false
	}
	return c.patchedRds.newest(key, rds), true
}

// reconcile decides on one database and says when to look again. What concerns its alarms is left to arm.
func (c *Controller) reconcile(ctx context.Context, key Key) (again time.Duration, err error) {
	begin, sweep := c.decideMarks.take(key)
	r, ok := c.begin(key)
	if !ok {
		if r.rds != nil && r.rds.DeletionTimestamp.IsZero() && r.switchOf() == v1alpha1.SwitchOn {
			return 0, r.create(ctx)
		}
		return 0, nil
	}
	if r.notBefore = begin; !sweep {
		r.notBefore = r.now.Add(-c.Cloud.ListedFor())
	}
	if said := r.switchOf(); said != "" {
		r.next.Switch = said
	}
	if reason, _ := r.off(); reason != "" {
		c.enqueueArming(key)
		return 0, nil
	}
	return r.reconcileEnabled(ctx)
}

// switchOf is the last word of spec.autopilot: what it says now, else what it said and nobody acted on. Absence is no word.
func (r *round) switchOf() v1alpha1.Switch {
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

func (r *round) mode() v1alpha1.Mode { return autopilot.NarrowerMode(r.rap.Spec.Mode, r.Mode) }

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

// write stores the status, if it differs, on top of what was read: a conflict means that this round decided on old news.
func (r *round) write(ctx context.Context) error {
	if equality.Semantic.DeepEqual(r.rap.Status, r.next) {
		return nil
	}
	stored, err := r.Cluster.WriteStatus(ctx, r.rap, r.next)
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	r.took(stored)
	return nil
}

// fence stores the status or, where it is stored already, makes sure that nobody has written since it was read.
func (r *round) fence(ctx context.Context) error {
	if !equality.Semantic.DeepEqual(r.rap.Status, r.next) {
		return r.write(ctx)
	}
	live, err := r.Cluster.LiveAutopilot(ctx, r.key.Namespace, r.key.Name)
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
		r.next = *r.rap.Status.DeepCopy()
		change(&r.next)
		err := r.write(ctx)
		if !errors.Is(err, autopilot.ErrConflict) {
			return err
		}
		live, err := r.Cluster.LiveAutopilot(ctx, r.key.Namespace, r.key.Name)
		if err != nil {
			return fmt.Errorf("read the RdsAutopilot again: %w", err)
		}
		if live.UID != r.rap.UID {
			return fmt.Errorf("read the RdsAutopilot again: another one has its name: %w", autopilot.ErrGone)
		}
		r.rap = live
	}
}

func (r *round) took(stored *v1alpha1.RdsAutopilot) {
	r.rap = stored
	r.writtenRap.keep(r.key, stored)
	r.next = *stored.Status.DeepCopy()
	r.limiter.observe(stored)
}
