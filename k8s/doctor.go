// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// CreateRehearsal creates an RdsAutopilot of doctor.
func (c *Cluster) CreateRehearsal(ctx context.Context, a *autopilotv1.RdsAutopilot) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a.Labels = c.labels
	_, err := c.autopilotsIn(a.Namespace).Create(ctx, a,
		metav1.CreateOptions{FieldManager: self, FieldValidation: metav1.FieldValidationStrict})
	return wrapError(err, "create RdsAutopilot %s/%s", a.Namespace, a.Name)
}

// Rehearsal reads an RdsAutopilot with its annotations. It returns autopilot.ErrGone if there is none.
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
	client, err := eventsv1client.NewForConfig(c.config)
	if err != nil {
		return nil, fmt.Errorf("configure the client for events: %w", err)
	}
	all, err := client.Events(a.Namespace).List(ctx, metav1.ListOptions{})
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
