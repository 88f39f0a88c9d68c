// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// Target returns what the Rds with that name says, as last seen; nil where there is none.
func (w *Cache) Target(namespace, name string) *autopilot.Target {
	rds, _ := w.rds.peek(namespace, name)
	return TargetOf(rds)
}

// EachTarget calls f with every Rds' target as last seen, in no order.
func (w *Cache) EachTarget(f func(*autopilot.Target)) {
	w.rds.each(func(rds *otcv1.Rds) { f(TargetOf(rds)) })
}

// TargetsByInstance returns those that have the cloud's instance id; more than one means that they contradict.
func (w *Cache) TargetsByInstance(id string) (found []*autopilot.Target) {
	for _, rds := range w.rds.by(byInstance, id) {
		found = append(found, TargetOf(rds))
	}
	return found
}

// OnTarget has f called for every Rds that is added (old is nil), changed, or deleted (new is nil), with what the watch
// delivered: the cache may already be ahead. It belongs before Run; f must not block.
func (w *Cache) OnTarget(f func(old, new *autopilot.Target)) error {
	return addHandler(w, w.rds, func(old, new *otcv1.Rds) { f(TargetOf(old), TargetOf(new)) })
}

// LiveTarget asks the API server. It returns autopilot.ErrGone if there is no such Rds.
func (c *Cluster) LiveTarget(ctx context.Context, namespace, name string) (*autopilot.Target, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	rds, err := c.rdsIn(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, wrapError(err, "get Rds %s/%s", namespace, name)
	}
	return TargetOf(rds), nil
}

// SharesInstance asks the API server whether another Rds of a namespace, or of all, has the same instance.
func (c *Cluster) SharesInstance(ctx context.Context, t *autopilot.Target, namespace string) (shared bool, err error) {
	list := func(ctx context.Context, opts metav1.ListOptions) (*otcv1.RdsList, error) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout) // one page
		defer cancel()
		return c.rdsIn(namespace).List(ctx, opts)
	}
	err = eachPage(ctx, list, func(page *otcv1.RdsList) (more bool) {
		shared = slices.ContainsFunc(page.Items, func(rds otcv1.Rds) bool { return rds.UID != t.UID && rds.Status.ID == t.InstanceID })
		return !shared
	})
	return shared, wrapError(err, "list Rds")
}
