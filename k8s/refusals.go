// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"maps"
	"slices"
	"sync"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refusals holds the watched namespaces that the API server does not let us read. A Role belongs to its namespace, so it
// goes when the namespace is deleted. The other namespaces must not depend on that.
type refusals struct {
	log *zap.Logger

	mu  sync.Mutex
	now map[string]map[string]bool // the refused resources, by namespace
}

// note records the result of a list, and logs when a namespace becomes refused or readable.
func (r *refusals) note(namespace, resource string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := len(r.now[namespace]) > 0
	switch {
	case err == nil && was:
		delete(r.now[namespace], resource)
		if len(r.now[namespace]) == 0 {
			delete(r.now, namespace)
			r.log.Info("the namespace is readable again", zap.String("namespace", namespace))
		}
	case apierrors.IsForbidden(err):
		if !was {
			r.now[namespace] = map[string]bool{}
			r.log.Warn("the API server refuses to list a watched namespace: nothing in it is managed. Restore its Role and RoleBinding, or remove it from --watch-namespaces",
				zap.String("namespace", namespace), zap.Error(wrapError(err, "list %s", resource)))
		}
		r.now[namespace][resource] = true
	}
}

func (r *refusals) refuses(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.now[namespace]) > 0
}

// RefusedNamespaces returns the watched namespaces that the API server did not let us list when we last tried, sorted.
func (r *refusals) RefusedNamespaces() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.now))
}
