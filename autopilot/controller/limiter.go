// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// maxHold is two hours because a flavor change that takes longer has failed, and must not block others.
const maxHold = 2 * time.Hour

// flavorLimiter limits how many flavors change in the cluster at the same time. A change has a place from its
// reservation on. Once its intent is stored, the place depends on the status. Only the leader writes intents, so the
// status that this process has stored is never older than the cache, which may lag by minutes.
type flavorLimiter struct {
	kube Kubernetes

	mu sync.Mutex
	// stored holds what this process has stored last. It is nil if no flavor changes.
	stored   map[Key]*v1alpha1.RdsAutopilot
	checked  map[Key]time.Time // when a round has last compared the status with the cloud
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
	l.stored, l.checked, l.reserved = make(map[Key]*v1alpha1.RdsAutopilot), make(map[Key]time.Time), make(map[Key]bool)
}

// reserve reserves a place for the flavor change of a database. It returns false if most other databases have a place.
func (l *flavorLimiter) reserve(k Key, most int, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	others := maps.Clone(l.reserved)
	l.kube.EachAutopilot(func(a *v1alpha1.RdsAutopilot) {
		key := Key{a.Namespace, a.Name}
		if stored, ok := l.stored[key]; ok {
			a = stored
		}
		if a != nil && now.Before(heldUntil(a, l.checked[key])) {
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

// store notes the status that a round has stored.
func (l *flavorLimiter) store(a *v1alpha1.RdsAutopilot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := Key{a.Namespace, a.Name}
	if heldUntil(a, time.Time{}).IsZero() {
		a = nil
	}
	l.stored[key] = a
}

// check notes that the stored status is what a round has seen at that time.
func (l *flavorLimiter) check(k Key, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checked[k] = now
}

// release ends the reservation of a database at the end of its round. From then on, its place depends on its status.
func (l *flavorLimiter) release(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, k)
}

// drop forgets a database whose RdsAutopilot was deleted.
func (l *flavorLimiter) drop(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, k)
	delete(l.stored, k)
	delete(l.checked, k)
}

// heldUntil returns until when a flavor change counts: until it stalls, and at most for maxHold. That it has stalled, or
// that no operator acts on a patch whose change the cloud refused, counts only if a round has checked it since: an older
// status shows the instance as it was before nobody led or before the cloud was unreachable. heldUntil returns the zero
// time if no flavor is changing.
func heldUntil(a *v1alpha1.RdsAutopilot, checked time.Time) (until time.Time) {
	for _, i := range a.Status.Intents() {
		progress, since := autopilot.RecordedProgress(*i, a.Spec.Apply)
		if progress == autopilot.Unstarted {
			since = autopilot.BusySince(*i, a.Status.Instance)
			if i.AskedTime != nil && checked.Before(i.Refusal.Time.Time) {
				since = i.Refusal.Time.Time
			}
		}
		if i.Kind != v1alpha1.KindFlavor || since.IsZero() {
			continue
		}
		end := since.Add(maxHold)
		stalls := autopilot.StallsAt(since, a.Status.Instance)
		if !stalls.IsZero() && stalls.Before(end) && !checked.Before(stalls) {
			end = stalls
		}
		if end.After(until) {
			until = end
		}
	}
	return until
}
