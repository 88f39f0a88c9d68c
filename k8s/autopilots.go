// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// listPage is how many objects a list requests at a time. It bounds the memory of one answer, because an object may
// have 1.5 MB.
const listPage = 25

// LiveAutopilot reads the RdsAutopilot from the API server. It returns autopilot.ErrGone if there is none.
func (c *Cluster) LiveAutopilot(ctx context.Context, namespace, name string) (*autopilotv1.RdsAutopilot, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a, err := c.autopilotsIn(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, wrapError(err, "get RdsAutopilot %s/%s", namespace, name)
	}
	trimAutopilot(a)
	return a, nil
}

// LiveAutopilots lists the RdsAutopilots of all watched namespaces from the API server, without those of namespaces
// that it does not let us list.
func (c *Cluster) LiveAutopilots(ctx context.Context) ([]*autopilotv1.RdsAutopilot, error) {
	return c.listLive(ctx, c.namespaces, func(*autopilotv1.RdsAutopilot) bool { return true })
}

func (c *Cluster) listLive(ctx context.Context, namespaces []string,
	wanted func(*autopilotv1.RdsAutopilot) bool) ([]*autopilotv1.RdsAutopilot, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var found []*autopilotv1.RdsAutopilot
	refused := 0
	for _, ns := range namespaces {
		err := eachPage(ctx, c.autopilotsIn(ns).List, func(page *autopilotv1.RdsAutopilotList) (more bool) {
			for i := range page.Items {
				a := &page.Items[i]
				trimAutopilot(a)
				if wanted(a) {
					found = append(found, a.DeepCopy()) // a pointer into the page would keep the whole page in memory
				}
			}
			return true
		})
		if apierrors.IsForbidden(err) {
			refused++
		}
		if err != nil && (!apierrors.IsForbidden(err) || refused == len(namespaces)) {
			return nil, wrapError(err, "list RdsAutopilots")
		}
	}
	return found, nil
}

// eachPage lists page by page while f returns true.
func eachPage[L metav1.ListInterface](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error),
	f func(L) (more bool)) error {
	for opts := (metav1.ListOptions{Limit: listPage}); ; {
		page, err := list(ctx, opts)
		if err != nil {
			return err
		}
		if opts.Continue = page.GetContinue(); !f(page) || opts.Continue == "" {
			return nil
		}
	}
}

// CreateAutopilot creates the RdsAutopilot of an Rds with the API server's defaults and our finalizer. It does not
// change an existing one. It returns autopilot.ErrGone if the namespace is being deleted.
func (c *Cluster) CreateAutopilot(ctx context.Context, t *autopilot.Target) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	no := false
	return c.withHold(ctx, func() error {
		_, err := c.autopilotsIn(t.Namespace).Create(ctx, &autopilotv1.RdsAutopilot{
			ObjectMeta: metav1.ObjectMeta{
				Name:       t.Name,
				Namespace:  t.Namespace,
				Finalizers: []string{autopilotv1.Finalizer},
				// Both flags are false, so that deleting a database never waits for us.
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: otcv1.GroupVersion().String(), Kind: otcv1.Kind, Name: t.Name, UID: t.UID,
					Controller: &no, BlockOwnerDeletion: &no,
				}},
			},
		}, metav1.CreateOptions{FieldManager: self, FieldValidation: metav1.FieldValidationStrict})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return wrapError(err, "create RdsAutopilot %s/%s", t.Namespace, t.Name)
	})
}

// SetFinalizer adds our finalizer if it is missing, and returns the object as stored. It returns
// autopilot.ErrConflict or autopilot.ErrGone.
func (c *Cluster) SetFinalizer(ctx context.Context,
	a *autopilotv1.RdsAutopilot) (stored *autopilotv1.RdsAutopilot, err error) {
	if slices.Contains(a.Finalizers, autopilotv1.Finalizer) {
		return a, nil
	}
	err = c.withHold(ctx, func() error {
		stored, err = c.patchFinalizers(ctx, a, func(others []string) []string { return append(others, autopilotv1.Finalizer) })
		return err
	})
	return stored, err
}

// RemoveFinalizer removes our finalizer and keeps others. It returns autopilot.ErrConflict, and nil if the object is
// gone.
func (c *Cluster) RemoveFinalizer(ctx context.Context, a *autopilotv1.RdsAutopilot) error {
	if !slices.Contains(a.Finalizers, autopilotv1.Finalizer) {
		return nil
	}
	return c.withoutHold(ctx, a.UID, func() error {
		_, err := c.patchFinalizers(ctx, a, func(others []string) []string { return others })
		if errors.Is(err, autopilot.ErrGone) {
			return nil
		}
		return err
	})
}

// patchFinalizers stores the finalizers that with returns for those of others.
func (c *Cluster) patchFinalizers(ctx context.Context, a *autopilotv1.RdsAutopilot,
	with func(others []string) []string) (*autopilotv1.RdsAutopilot, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	all := a.Finalizers
	if len(all) >= maxFinalizers { // there may be more
		live, err := c.autopilotsIn(a.Namespace).Get(ctx, a.Name, metav1.GetOptions{})
		if err != nil {
			return nil, wrapError(err, "get RdsAutopilot %s/%s", a.Namespace, a.Name)
		}
		all = live.Finalizers
	}
	others := slices.DeleteFunc(slices.Clone(all), func(f string) bool { return f == autopilotv1.Finalizer })
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": a.ResourceVersion, "finalizers": with(others)},
	})
	if err != nil {
		return nil, fmt.Errorf("encode finalizers: %w", err)
	}
	return c.patchAutopilot(ctx, a, patch)
}

// DeleteAutopilot deletes the RdsAutopilot with that uid. It returns nil if the object is gone, and
// autopilot.ErrConflict if another one has its name.
func (c *Cluster) DeleteAutopilot(ctx context.Context, a *autopilotv1.RdsAutopilot) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := c.autopilotsIn(a.Namespace).Delete(ctx, a.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &a.UID}})
	if isGone(err) {
		return nil
	}
	return wrapError(err, "delete RdsAutopilot %s/%s", a.Namespace, a.Name)
}
