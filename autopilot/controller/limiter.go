// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// flavorLimiter limits how many flavors change in the cluster at the same time. A change has a place from its
// reservation on. Once it is stored, the place follows from status.changes.
type flavorLimiter struct {
	kube Kubernetes

	mu sync.Mutex
	// stored holds what this process has stored last. Only the leader writes changes, and the cache may lag by minutes.
	stored   map[Key][]v1alpha1.Change
	reserved map[Key]bool
}

func newFlavorLimiter(kube Kubernetes) *flavorLimiter {
	l := &flavorLimiter{kube: kube}
	l.clear()
	return l
}

// clear forgets everything, because another replica may have led meanwhile.
func (l *flavorLimiter) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stored, l.reserved = make(map[Key][]v1alpha1.Change), make(map[Key]bool)
}

// reserve reserves a place for the flavor change of a database. It returns false if most other databases have a place.
func (l *flavorLimiter) reserve(k Key, most int, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	others := maps.Clone(l.reserved)
	l.kube.EachAutopilot(func(a *v1alpha1.RdsAutopilot) {
		key, changes := Key{a.Namespace, a.Name}, a.Status.Changes
		if stored, ok := l.stored[key]; ok {
			changes = stored
		}
		if change.HoldsPlace(changes, now) {
			others[key] = true
		}
	})
	delete(others, k)
	if len(others) >= most {
		return false
	}
	l.reserved[k] = true
	return true
}

func (l *flavorLimiter) store(a *v1alpha1.RdsAutopilot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stored[Key{a.Namespace, a.Name}] = a.Status.Changes
}

// release ends the reservation of a database at the end of its round. From then on, its place depends on its status.
func (l *flavorLimiter) release(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, k)
}

func (l *flavorLimiter) drop(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, k)
	delete(l.stored, k)
}
