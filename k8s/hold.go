// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"fmt"
	"slices"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Helm names the key in its error. Whoever then looks at the hold finds the text.
const (
	holdKey  = "databases-need-the-service"
	holdText = `yes: RdsAutopilots have topics and alarm rules in the cloud, which only the service removes. To see which
ones, and what to do, run "rds-autopilot uninstall-check" in a pod of the service.`
)

// allFinalizers is the weight of a removal in Cluster.finalizers. Setting a finalizer has the weight 1.
const allFinalizers = 1 << 20

// HoldName returns the name of the hold of an installation whose lease has this name. The chart uses the same.
//
// The hold is a ConfigMap that exists while an RdsAutopilot has our finalizer. The chart's pre-delete hook is a
// ConfigMap with the same name and other data. Helm cannot create it, because it exists, nor apply it, because it is
// immutable. So helm uninstall stops before it removes the service, without a pod and its image.
func HoldName(leaseName string) string { return leaseName + "-in-use" }

// SyncHold creates or deletes the hold. It is for what the service did not do itself: a person may have removed a
// finalizer or the hold, and an older release had no hold.
func (c *Cluster) SyncHold(ctx context.Context) error {
	if c.finalized("") != nil {
		return c.withHold(ctx, func() error { return nil })
	}
	return c.withoutHold(ctx, "", func() error { return nil })
}

// withHold creates the hold before it calls set, which sets a finalizer.
func (c *Cluster) withHold(ctx context.Context, set func() error) error {
	if err := c.finalizers.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for the removal of a finalizer: %w", err)
	}
	defer c.finalizers.Release(1)
	if c.holdName.Name != "" {
		c.reportHold(c.createHold(ctx))
	}
	return set()
}

// withoutHold calls remove, which removes the finalizer of the RdsAutopilot with that uid. If no other one has the
// finalizer, it deletes the hold before: once no finalizer is left, helm uninstall must work.
func (c *Cluster) withoutHold(ctx context.Context, uid types.UID, remove func() error) error {
	if err := c.finalizers.Acquire(ctx, allFinalizers); err != nil {
		return fmt.Errorf("wait for other finalizers: %w", err)
	}
	defer c.finalizers.Release(allFinalizers)
	if c.holdName.Name != "" {
		c.reportHold(c.deleteHold(ctx, uid))
	}
	return remove()
}

func (c *Cluster) createHold(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	immutable := true
	_, err := c.core.ConfigMaps(c.holdName.Namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: c.holdName.Name},
		Data:       map[string]string{holdKey: holdText},
		Immutable:  &immutable,
	}, metav1.CreateOptions{FieldManager: self})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (c *Cluster) deleteHold(ctx context.Context, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if needed, err := c.isFinalized(ctx, uid); err != nil || needed {
		return err
	}
	err := c.core.ConfigMaps(c.holdName.Namespace).Delete(ctx, c.holdName.Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// reportHold logs that the hold could not be created or deleted. The databases must not depend on it, and the next
// SyncHold tries again. A right that the role of an older release does not grant is logged once.
func (c *Cluster) reportHold(err error) {
	report := func() {
		c.log.Warn("helm uninstall may not know whether databases need the service",
			zap.String("configMap", c.holdName.String()), zap.Error(err))
	}
	if apierrors.IsForbidden(err) {
		c.holdForbidden.Do(report)
	} else if err != nil {
		report()
	}
}

// finalized returns an RdsAutopilot in the cache with our finalizer and another uid, or nil.
func (c *Cluster) finalized(uid types.UID) (found *autopilotv1.RdsAutopilot) {
	c.EachAutopilot(func(a *autopilotv1.RdsAutopilot) {
		if isFinalized(a, uid) {
			found = a
		}
	})
	return found
}

// isFinalized asks the API server whether an RdsAutopilot with another uid has our finalizer. It lists them only if the
// one that the cache names has it no more.
func (c *Cluster) isFinalized(ctx context.Context, uid types.UID) (found bool, err error) {
	if cached := c.finalized(uid); cached != nil {
		a, err := c.LiveAutopilot(ctx, cached.Namespace, cached.Name)
		if err == nil && isFinalized(a, uid) {
			return true, nil
		}
	}
	for _, ns := range c.namespaces {
		err := eachPage(ctx, c.autopilotsIn(ns).List, func(page *autopilotv1.RdsAutopilotList) (more bool) {
			found = slices.ContainsFunc(page.Items, func(a autopilotv1.RdsAutopilot) bool { return isFinalized(&a, uid) })
			return !found
		})
		if err != nil || found {
			return found, wrapError(err, "list RdsAutopilots")
		}
	}
	return false, nil
}

func isFinalized(a *autopilotv1.RdsAutopilot, except types.UID) bool {
	return a.UID != except && slices.Contains(a.Finalizers, autopilotv1.Finalizer)
}
