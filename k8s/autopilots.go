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

// listPage is how many objects a list requests at a time. Reading and decoding allocate three times the size of
// the answer, and an object may have 1.5 MB, so a page costs about 20 MB at most.
const listPage = 4

// LiveAutopilot reads the RdsAutopilot from the API server. If there is none, it returns autopilot.ErrGone, and the
// cache has none either. An error about a missing right leaves the cache as it is.
func (c *Cluster) LiveAutopilot(ctx context.Context, namespace, name string) (*autopilotv1.RdsAutopilot, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	cached, isCached := c.Autopilot(namespace, name)
	a, err := c.autopilotsIn(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		err = wrapError(err, "get RdsAutopilot %s/%s", namespace, name)
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

func eachPage[L metav1.ListInterface](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error),
	f func(L)) error {
	for opts := (metav1.ListOptions{Limit: listPage}); ; {
		page, err := list(ctx, opts)
		if err != nil {
			return err
		}
		f(page)
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			return nil
		}
	}
}

// CreateAutopilot creates the RdsAutopilot of an Rds with the API server's defaults. It does not change an existing one.
// It returns autopilot.ErrGone if the namespace is being deleted. A refusal is also a Warning on the Rds, because there is no
// status that could show it.
func (c *Cluster) CreateAutopilot(ctx context.Context, t *autopilot.Target) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	no := false
	_, err := c.autopilotsIn(t.Namespace).Create(ctx, &autopilotv1.RdsAutopilot{
		ObjectMeta: metav1.ObjectMeta{
			Name:      t.Name,
			Namespace: t.Namespace,
			Labels:    c.labels,
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
	err = wrapError(err, "create RdsAutopilot %s/%s", t.Namespace, t.Name)
	if refusal, ok := errors.AsType[*autopilot.RefusedError](err); ok {
		c.Event(t, nil, autopilot.Event{Warning: true, Reason: string(autopilot.ReasonRefused), Action: "Create",
			Note: "The Kubernetes API refuses the RdsAutopilot of this database, so nothing watches it: " + refusal.Message})
	}
	return err
}
