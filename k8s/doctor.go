// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
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

// MissingRights returns the rights that the user of this connection lacks, of those that the service needs for its
// databases, and doctor in the service's own namespace. rehearsal is the name of its RdsAutopilot.
func (c *Cluster) MissingRights(ctx context.Context, own, rehearsal string) (missing []string, err error) {
	client, err := authorizationv1client.NewForConfig(c.config)
	if err != nil {
		return nil, fmt.Errorf("configure the client for rights: %w", err)
	}
	for _, need := range []struct {
		namespaces                                []string
		group, resource, subresource, name, verbs string
	}{
		{c.namespaces, otcv1.Group, otcv1.Resource, "", "", "get list watch patch"},
		{c.namespaces, autopilotv1.Group, autopilotv1.Resource, "", "", "get list watch create"},
		{c.namespaces, autopilotv1.Group, autopilotv1.Resource, "status", "", "patch"},
		{c.namespaces, "events.k8s.io", "events", "", "", "create patch"},
		{[]string{own}, autopilotv1.Group, autopilotv1.Resource, "", rehearsal, "delete"},
		{[]string{own}, "events.k8s.io", "events", "", "", "list"},
		{[]string{own}, "", "configmaps", "", "", "create"},
		{[]string{own}, "", "configmaps", "", TopicConfigMap, "get list watch patch delete"},
	} {
		for _, ns := range need.namespaces {
			for verb := range strings.FieldsSeq(need.verbs) {
				review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
					ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: ns, Group: need.group, Resource: need.resource, Subresource: need.subresource, Name: need.name, Verb: verb,
					},
				}}
				if review, err = client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{}); err != nil {
					return nil, wrapError(err, "review the own rights")
				}
				if !review.Status.Allowed {
					missing = append(missing, strings.Join(strings.Fields(verb+" "+need.resource+" "+need.subresource+" "+ns), " "))
				}
			}
		}
	}
	return missing, nil
}
