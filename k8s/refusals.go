// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"slices"
	"sync"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// refusals holds the lists that the API server refuses. A Role belongs to its namespace, so it goes when the namespace is
// deleted. The other namespaces must not depend on that. Without an operator there is no definition of Rds, and what
// Terraform has made must not depend on that.
type refusals struct {
	log *zap.Logger

	mu  sync.Mutex
	now map[[2]string]error // by namespace and resource
}

// note records the result of a list, and logs when it becomes a refusal or none any more.
func (r *refusals) note(namespace, resource string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, fields := [2]string{namespace, resource}, []zap.Field{zap.String("namespace", namespace), zap.String("resource", resource)}
	was := r.now[list]
	switch {
	case apierrors.IsNotFound(err):
		if r.now[list] = err; was == nil {
			r.log.Warn("the resource has no definition. Without Rds, only each RdsAutopilot with spec.instanceID is managed. With an operator: kubectl apply -f deploy/crds/rds.yaml", fields...)
		}
	case apierrors.IsForbidden(err) && was == nil:
		r.now[list] = err
		r.log.Warn("the API server refuses to list a watched namespace: nothing in it is managed. Restore its Role and RoleBinding, or remove it from --watch-namespaces",
			append(fields, zap.Error(wrapError(err, "list")))...)
	case err == nil && was != nil:
		delete(r.now, list)
		r.log.Info("the namespace is readable again", fields...)
	}
}

// lacksRds reports whether there was no definition of Rds when we last listed a namespace.
func (r *refusals) lacksRds() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for list, err := range r.now {
		if list[1] == otcv1.Resource && apierrors.IsNotFound(err) {
			return true
		}
	}
	return false
}

// RefusedNamespaces returns the watched namespaces that the API server did not let us list when we last tried, sorted.
func (r *refusals) RefusedNamespaces() (namespaces []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for list, err := range r.now {
		if apierrors.IsForbidden(err) {
			namespaces = append(namespaces, list[0])
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}
