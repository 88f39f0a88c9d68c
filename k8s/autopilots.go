// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// LiveAutopilot reads the RdsAutopilot from the API server. If there is none, it returns autopilot.ErrGone, and the
// cache has none either. An error about a missing right leaves the cache as it is.
func (c *Cluster) LiveAutopilot(ctx context.Context, namespace, name string) (*autopilotv1.RdsAutopilot, error) {
	cached, isCached := c.Autopilot(namespace, name)
	a, err := c.Rehearsal(ctx, namespace, name)
	if err != nil {
		if isCached && errors.Is(err, autopilot.ErrGone) {
			c.autopilots.forget(cached)
		}
		return nil, err
	}
	trimAutopilot(a)
	return a, nil
}

// IsGone reports whether the API server has no such RdsAutopilot. One that may not be read is not gone, nor is one of a
// namespace that is not watched.
func (c *Cluster) IsGone(ctx context.Context, namespace, name string) bool {
	_, err := c.LiveAutopilot(ctx, namespace, name)
	return c.IsWatched(namespace) && errors.Is(err, autopilot.ErrGone)
}

// CreateAutopilot creates the RdsAutopilot of an Rds with the API server's defaults. It does not change an existing one.
// It returns autopilot.ErrGone if the namespace is being deleted. A refusal is also a Warning on the Rds, because there is no
// status that could show it.
func (c *Cluster) CreateAutopilot(ctx context.Context, t *autopilot.Target) error {
	err := c.Create(ctx, &autopilotv1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{
		Name: t.Name, Namespace: t.Namespace,
		// Both flags are false, so that deleting a database never waits for us.
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: otcv1.GroupVersion().String(), Kind: otcv1.Kind, Name: t.Name, UID: t.UID,
			Controller: new(false), BlockOwnerDeletion: new(false),
		}},
	}})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if refusal, ok := errors.AsType[*autopilot.RefusedError](err); ok {
		c.Event(t, nil, autopilot.Event{Warning: true, Reason: string(autopilot.ReasonRefused), Action: "Create",
			Note: "The Kubernetes API refuses the RdsAutopilot of this database, so nothing watches it: " + refusal.Message})
	}
	return err
}

// Create creates an RdsAutopilot with our labels and the API server's defaults.
func (c *Cluster) Create(ctx context.Context, a *autopilotv1.RdsAutopilot) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a.Labels = c.labels
	_, err := c.autopilotsIn(a.Namespace).Create(ctx, a,
		metav1.CreateOptions{FieldManager: self, FieldValidation: metav1.FieldValidationStrict})
	return wrapError(err, "create RdsAutopilot %s/%s", a.Namespace, a.Name)
}

// Rehearsal reads an RdsAutopilot as LiveAutopilot does, with its annotations.
func (c *Cluster) Rehearsal(ctx context.Context, namespace, name string) (*autopilotv1.RdsAutopilot, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a, err := c.autopilotsIn(namespace).Get(ctx, name, metav1.GetOptions{})
	return a, wrapError(err, "get RdsAutopilot %s/%s", namespace, name)
}

// DeleteRehearsal deletes an RdsAutopilot of doctor. It returns nil if the object is gone, and autopilot.ErrConflict if
// another one has its name.
func (c *Cluster) DeleteRehearsal(ctx context.Context, a *autopilotv1.RdsAutopilot) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := c.autopilotsIn(a.Namespace).Delete(ctx, a.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &a.UID}})
	if isGone(err) {
		return nil
	}
	return wrapError(err, "delete RdsAutopilot %s/%s", a.Namespace, a.Name)
}

// Warnings returns the notes of the Warning events on an RdsAutopilot and on the topic of the installation.
func (c *Cluster) Warnings(ctx context.Context, a *autopilotv1.RdsAutopilot) (notes []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	all, err := c.events.Events(a.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, wrapError(err, "list events in %s", a.Namespace)
	}
	for _, e := range all.Items {
		if (e.Regarding.UID == a.UID || e.Regarding.Name == TopicConfigMap) && e.Type == "Warning" {
			notes = append(notes, e.Note)
		}
	}
	return notes, nil
}
