// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// maxHold is how long a change of flavor holds its place at most, whatever becomes of it.
const maxHold = 2 * time.Hour

// flavorChangeLimiter bounds how many flavors change at a time in the cluster. It knows the databases whose flavor is
// changing from watch events and from the leader's own writes.
type flavorChangeLimiter struct {
	mu     sync.Mutex
	places map[Key]place
}

// place is what is known of one database.
type place struct {
	version string    // of the RdsAutopilot that it was read from
	until   time.Time // zero: its flavor is not changing
	taken   bool      // a round is about to store an intent
}

func newFlavorChangeLimiter() *flavorChangeLimiter {
	return &flavorChangeLimiter{places: make(map[Key]place)}
}

// observe takes the state of a database from its RdsAutopilot, unless a newer one was seen already.
func (l *flavorChangeLimiter) observe(a *v1alpha1.RdsAutopilot) {
	k := Key{a.Namespace, a.Name}
	until := heldUntil(&a.Status)
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.places[k]
	if order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, was.version); err == nil && order < 0 {
		return
	}
	if until.IsZero() && !was.taken {
		delete(l.places, k)
		return
	}
	l.places[k] = place{version: a.ResourceVersion, until: until, taken: was.taken}
}

// forget drops a database that is gone.
func (l *flavorChangeLimiter) forget(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.places, k)
}

// take gives a database a place for the intent that is about to be stored, unless that many others have one.
func (l *flavorChangeLimiter) take(k Key, most int, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	others := 0
	for other, p := range l.places {
		if other != k && (p.taken || now.Before(p.until)) {
			others++
		}
	}
	if others >= most {
		return false
	}
	p := l.places[k]
	p.taken = true
	l.places[k] = p
	return true
}

// release ends what take began: from now on the stored intent holds the place, if there is one.
func (l *flavorChangeLimiter) release(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, known := l.places[k]
	if !known {
		return
	}
	if p.taken = false; p.until.IsZero() {
		delete(l.places, k)
		return
	}
	l.places[k] = p
}

// heldUntil is when the change of a flavor gives its place back: when it stalls, and after two hours at the latest. It is
// zero where no flavor is changing.
func heldUntil(s *v1alpha1.Status) (until time.Time) {
	for _, i := range s.Intents() {
		if !autopilot.HoldsPlace(*i) {
			continue
		}
		begin := i.DecisionTime
		if i.JobTime != nil {
			begin = *i.JobTime
		}
		end := begin.Add(maxHold)
		if stalls := autopilot.StallsAt(*i, s.Instance); !stalls.IsZero() && stalls.Before(end) {
			end = stalls
		}
		if end.After(until) {
			until = end
		}
	}
	return until
}
