// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/shorten"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// TargetOf returns the target that an Rds describes. It returns nil for nil, and for an Rds that is unreadable.
func TargetOf(rds *otcv1.Rds) *autopilot.Target {
	if rds == nil || rds.Unreadable != "" {
		return nil
	}
	t := &autopilot.Target{
		Namespace: rds.Namespace, Name: rds.Name, UID: rds.UID, ResourceVersion: rds.ResourceVersion,
		InstanceID:        shorten.To(rds.Status.ID, maxID),
		Wanted:            autopilot.Wanted{VolumeGB: int(rds.Spec.VolumeSize), Flavor: shorten.To(rds.Spec.FlavorRef, maxID)},
		Deleting:          rds.DeletionTimestamp != nil,
		OperatorAutopilot: rds.Spec.Endpoint != "",
	}
	if on := rds.Spec.Autopilot; on != nil {
		if t.Switch = autopilotv1.SwitchOff; *on {
			t.Switch = autopilotv1.SwitchOn
		}
	}
	return t
}

// TargetNamedBy returns the target of an RdsAutopilot that sets spec.instanceID, or nil.
func TargetNamedBy(a *autopilotv1.RdsAutopilot) *autopilot.Target {
	if a == nil || a.Spec.InstanceID == "" {
		return nil
	}
	return &autopilot.Target{
		Namespace: a.Namespace, Name: a.Name, UID: a.UID, ResourceVersion: a.ResourceVersion, NoRds: true,
		InstanceID: a.Spec.InstanceID, Deleting: a.DeletionTimestamp != nil,
	}
}

// Target returns the cached target of the Rds with that name or, if there is none, of the RdsAutopilot that sets
// spec.instanceID. It returns nil if there is neither.
func (c *Cluster) Target(namespace, name string) *autopilot.Target {
	if rds, ok := c.rds.get(namespace, name); ok {
		return TargetOf(rds)
	}
	if a, ok := c.autopilots.get(namespace, name); ok {
		return TargetNamedBy(a)
	}
	return nil
}

// EachTarget calls f with every cached target, in no order.
func (c *Cluster) EachTarget(f func(*autopilot.Target)) {
	c.rds.each(func(rds *otcv1.Rds) {
		if t := TargetOf(rds); t != nil {
			f(t)
		}
	})
	c.autopilots.each(func(a *autopilotv1.RdsAutopilot) {
		_, hasRds := c.rds.get(a.Namespace, a.Name)
		if t := TargetNamedBy(a); t != nil && !hasRds {
			f(t)
		}
	})
}

// OnTarget registers f for every Rds that is added (old is nil), changed or deleted (new is nil). The cache may be
// newer than the event. An Rds that becomes unreadable counts as deleted, and a Warning names it. Callers must register
// before Run, and f must not block.
func (c *Cluster) OnTarget(f func(old, new *autopilot.Target)) error {
	synced, err := addHandler(c.rds, c.namespaces, func(old, new *otcv1.Rds) {
		if new != nil && new.Unreadable != "" && (old == nil || old.Unreadable != new.Unreadable) {
			c.Event(&autopilot.Target{Namespace: new.Namespace, Name: new.Name, UID: new.UID}, nil, skipped(new))
		}
		if was, is := TargetOf(old), TargetOf(new); was != nil || is != nil {
			f(was, is)
		}
	})
	c.synced = append(c.synced, synced...)
	return err
}

func skipped(rds *otcv1.Rds) autopilot.Event {
	return autopilot.Event{Warning: true, Reason: autopilotv1.ConditionUnreadable, Action: "Observe",
		Note: "The service skips this Rds, because " + rds.Unreadable + ". Correct its type"}
}

// setUnreadable sets the condition Unreadable if the Rds of an RdsAutopilot is unreadable, and else removes it.
func (c *Cluster) setUnreadable(a *autopilotv1.RdsAutopilot, next *autopilotv1.Status) {
	next.Conditions = slices.Clone(next.Conditions)
	if rds, ok := c.rds.get(a.Namespace, a.Name); !ok || rds.Unreadable == "" {
		meta.RemoveStatusCondition(&next.Conditions, autopilotv1.ConditionUnreadable)
	} else if e := skipped(rds); meta.SetStatusCondition(&next.Conditions, metav1.Condition{Type: e.Reason,
		Status: metav1.ConditionTrue, Reason: "WrongType", Message: e.Note, ObservedGeneration: a.Generation}) {
		c.Event(nil, a, e)
	}
}

// UnreadableRds returns how many Rds are skipped because they are unreadable.
func (c *Cluster) UnreadableRds() (n int) {
	c.rds.each(func(rds *otcv1.Rds) {
		if rds.Unreadable != "" {
			n++
		}
	})
	return n
}

// LiveTarget reads the target from the API server. It returns autopilot.ErrGone if the Rds is unreadable, or if there is
// neither an Rds nor an RdsAutopilot with spec.instanceID. The cache has no object either that it does not find.
func (c *Cluster) LiveTarget(ctx context.Context, namespace, name string) (*autopilot.Target, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	cached, isCached := c.rds.get(namespace, name)
	rds, err := c.rdsIn(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil && rds.Unreadable != "" {
		return nil, fmt.Errorf("get Rds %s/%s: %s: %w", namespace, name, rds.Unreadable, autopilot.ErrGone)
	} else if err == nil {
		return TargetOf(rds), nil
	}
	// A 404 without a definition looks as that of a proxy, which must not make a known Rds look deleted.
	if _, known := c.rds.get(namespace, name); !known && apierrors.IsNotFound(err) && c.lacksRds() {
		err = fmt.Errorf("get Rds %s/%s: no definition: %w", namespace, name, autopilot.ErrGone)
	} else if err = wrapError(err, "get Rds %s/%s", namespace, name); !errors.Is(err, autopilot.ErrGone) {
		return nil, err
	}
	if isCached {
		c.rds.forget(cached)
	}
	if a, liveErr := c.LiveAutopilot(ctx, namespace, name); liveErr == nil && a.Spec.InstanceID != "" {
		return TargetNamedBy(a), nil
	}
	return nil, err
}
