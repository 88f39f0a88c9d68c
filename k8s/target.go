// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/autopilot"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// TargetOf is what an Rds says of its database; nil for nil.
func TargetOf(rds *otcv1.Rds) *autopilot.Target {
	if rds == nil {
		return nil
	}
	t := &autopilot.Target{
		Namespace: rds.Namespace, Name: rds.Name, UID: rds.UID, ResourceVersion: rds.ResourceVersion,
		InstanceID:        rds.Status.ID,
		Wanted:            autopilot.Wanted{VolumeGB: int(rds.Spec.VolumeSize), Flavor: rds.Spec.FlavorRef},
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

// TargetNamedBy is the instance that an autopilot names itself; nil where it names none.
func TargetNamedBy(a *autopilotv1.RdsAutopilot) *autopilot.Target {
	if a == nil || a.Spec.InstanceID == "" || a.IsDoctors() {
		return nil
	}
	return &autopilot.Target{
		Namespace: a.Namespace, Name: a.Name, UID: a.UID, ResourceVersion: a.ResourceVersion, NoRds: true,
		InstanceID: a.Spec.InstanceID, Deleting: a.DeletionTimestamp != nil,
	}
}

// Target returns what the Rds with that name says, as last seen, or else the autopilot that names its instance itself; nil where
// there is neither.
func (w *Cache) Target(namespace, name string) *autopilot.Target {
	if rds, ok := w.rds.peek(namespace, name); ok {
		return TargetOf(rds)
	}
	if p, ok := w.autopilots.peek(namespace, name); ok {
		return TargetNamedBy(&p.RdsAutopilot)
	}
	return nil
}

// EachTarget calls f with every target as last seen, in no order.
func (w *Cache) EachTarget(f func(*autopilot.Target)) {
	w.rds.each(func(rds *otcv1.Rds) { f(TargetOf(rds)) })
	w.autopilots.each(func(p *packed) {
		if t := w.withoutRds(&p.RdsAutopilot); t != nil {
			f(t)
		}
	})
}

// withoutRds is the target that an autopilot is itself; nil where an Rds has its name.
func (w *Cache) withoutRds(a *autopilotv1.RdsAutopilot) *autopilot.Target {
	if _, has := w.rds.peek(a.Namespace, a.Name); has {
		return nil
	}
	return TargetNamedBy(a)
}

// TargetsByInstance returns those that have the cloud's instance id; more than one means that they contradict.
func (w *Cache) TargetsByInstance(id string) (found []*autopilot.Target) {
	for _, rds := range w.rds.by(byInstance, id) {
		found = append(found, TargetOf(rds))
	}
	for _, p := range w.autopilots.by(byInstance, id) {
		if t := w.withoutRds(&p.RdsAutopilot); t != nil {
			found = append(found, t)
		}
	}
	return found
}

// OnTarget has f called for every Rds that is added (old is nil), changed, or deleted (new is nil), with what the watch
// delivered: the cache may already be ahead. It belongs before Run; f must not block.
func (w *Cache) OnTarget(f func(old, new *autopilot.Target)) error {
	return addHandler(w, w.rds, func(old, new *otcv1.Rds) { f(TargetOf(old), TargetOf(new)) })
}

// LiveTarget asks the API server. It returns autopilot.ErrGone if there is no such Rds, and no autopilot that names its instance
// itself.
func (c *Cluster) LiveTarget(ctx context.Context, namespace, name string) (*autopilot.Target, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	rds, err := c.rdsIn(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return TargetOf(rds), nil
	}
	if err = wrapError(err, "get Rds %s/%s", namespace, name); !errors.Is(err, autopilot.ErrGone) {
		return nil, err
	}
	if a, liveErr := c.LiveAutopilot(ctx, namespace, name); liveErr == nil && a.Spec.InstanceID != "" {
		return TargetNamedBy(a), nil
	}
	return nil, err
}

// LiveTargetsByInstance asks the API server for what TargetsByInstance returns, in a namespace or in all.
func (c *Cluster) LiveTargetsByInstance(ctx context.Context, id, namespace string) ([]*autopilot.Target, error) {
	list := func(ctx context.Context, opts metav1.ListOptions) (*otcv1.RdsList, error) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout) // one page
		defer cancel()
		return c.rdsIn(namespace).List(ctx, opts)
	}
	var found []*autopilot.Target
	has := map[types.NamespacedName]bool{}
	err := eachPage(ctx, list, func(page *otcv1.RdsList) (more bool) {
		for i := range page.Items {
			rds := &page.Items[i]
			if has[types.NamespacedName{Namespace: rds.Namespace, Name: rds.Name}] = true; rds.Status.ID == id {
				found = append(found, TargetOf(rds))
			}
		}
		return true
	})
	if err != nil {
		return nil, wrapError(err, "list Rds")
	}
	named, err := c.listLive(ctx, []string{namespace}, func(a *autopilotv1.RdsAutopilot) bool {
		return a.Spec.InstanceID == id && !a.IsDoctors() && !has[types.NamespacedName{Namespace: a.Namespace, Name: a.Name}]
	})
	for _, a := range named {
		found = append(found, TargetNamedBy(a))
	}
	return found, err
}
