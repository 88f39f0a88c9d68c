// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// maxHold is two hours because a flavor change that takes longer has failed, and must not block others.
	maxHold = 2 * time.Hour
	// reservedFor is one minute because the cache shows a stored intent within seconds, even in a storm.
	reservedFor = time.Minute
)

// flavorLimiter limits how many flavors change in the cluster at the same time. It counts the changes that the cache
// shows, and the reservations of this process, because the cache does not have an intent yet when it has just been
// stored.
type flavorLimiter struct {
	kube Kubernetes

	mu       sync.Mutex
	reserved map[Key]time.Time // end of each reservation
}

func newFlavorLimiter(kube Kubernetes) *flavorLimiter {
	return &flavorLimiter{kube: kube, reserved: make(map[Key]time.Time)}
}

// reserve reserves a place for the flavor change of a database. It returns false if most other databases have a place.
func (l *flavorLimiter) reserve(k Key, most int, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	others := make(map[Key]bool)
	l.kube.EachAutopilot(func(a *v1alpha1.RdsAutopilot) {
		if now.Before(heldUntil(a)) {
			others[Key{a.Namespace, a.Name}] = true
		}
	})
	for other, end := range l.reserved {
		if now.Before(end) {
			others[other] = true
		} else {
			delete(l.reserved, other)
		}
	}
	delete(others, k)
	if len(others) >= most {
		return false
	}
	l.reserved[k] = now.Add(reservedFor)
	return true
}

// release ends the reservation of a database that has no flavor change in its status.
func (l *flavorLimiter) release(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, k)
}

// heldUntil returns until when a flavor change counts: until it stalls, and at most for maxHold. It returns the zero
// time if no flavor is changing.
func heldUntil(a *v1alpha1.RdsAutopilot) (until time.Time) {
	for _, i := range a.Status.Intents() {
		progress, since := autopilot.RecordedProgress(*i, a.Spec.Apply)
		if progress == autopilot.Unstarted {
			since = autopilot.BusySince(*i, a.Status.Instance)
		}
		if i.Kind != v1alpha1.KindFlavor || since.IsZero() {
			continue
		}
		end := since.Add(maxHold)
		if stalls := autopilot.StallsAt(since, a.Status.Instance); !stalls.IsZero() && stalls.Before(end) {
			end = stalls
		}
		if end.After(until) {
			until = end
		}
	}
	return until
}
