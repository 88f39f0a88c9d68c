// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"slices"
	"sync"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refusals holds the watched namespaces that the API server does not let us list. A Role belongs to its namespace, so
// it goes when the namespace is deleted. The other namespaces must not depend on that.
type refusals struct {
	log *zap.Logger

	mu  sync.Mutex
	now map[[2]string]bool // by namespace and resource
}

// note records the result of a list, and logs when it becomes a refusal or none any more.
func (r *refusals) note(namespace, resource string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, fields := [2]string{namespace, resource}, []zap.Field{zap.String("namespace", namespace), zap.String("resource", resource)}
	switch refused := apierrors.IsForbidden(err); {
	case refused && !r.now[list]:
		r.now[list] = true
		r.log.Warn("the API server refuses to list a watched namespace: nothing in it is managed. Restore its Role and RoleBinding, or remove it from --watch-namespaces",
			append(fields, zap.Error(wrapError(err, "list")))...)
	case err == nil && r.now[list]:
		delete(r.now, list)
		r.log.Info("the namespace is readable again", fields...)
	}
}

// RefusedNamespaces returns the watched namespaces that the API server did not let us list when we last tried, sorted.
func (r *refusals) RefusedNamespaces() (namespaces []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for list := range r.now {
		namespaces = append(namespaces, list[0])
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}
