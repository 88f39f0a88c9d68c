package controller

import (
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// brake keeps the number of flavors that change at a time. The cache is behind what was just decided, so whoever is
// about to store an intent holds a place until the cache has it.
type brake struct {
	mu   sync.Mutex
	held map[Key]time.Time // zero while the round lasts, then when the intent was stored
}

// bridged is how long a stored intent counts without the cache knowing it.
const bridged = 10 * time.Second

// full reports whether as many other databases hold a place or are changing.
func (b *brake) full(k Key, most int, changing map[Key]bool, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.busy(k, changing, now) >= most
}

// take gives a place to a database, unless the brake is full.
func (b *brake) take(k Key, most int, changing map[Key]bool, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy(k, changing, now) >= most {
		return false
	}
	b.held[k] = time.Time{}
	return true
}

// busy counts the others; b.mu is held.
func (b *brake) busy(k Key, changing map[Key]bool, now time.Time) int {
	busy := 0
	for other := range changing {
		if other != k {
			busy++
		}
	}
	for other, stored := range b.held {
		switch {
		case !stored.IsZero() && (changing[other] || now.Sub(stored) > bridged):
			delete(b.held, other)
		case other != k && !changing[other]:
			busy++
		}
	}
	return busy
}

// release gives the place back, or keeps it until the cache knows the intent that was stored.
func (b *brake) release(k Key, stored bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at, ok := b.held[k]; !ok || !at.IsZero() {
		return
	}
	if stored {
		b.held[k] = now
		return
	}
	delete(b.held, k)
}

// changing are the databases whose flavor is changing and does come, as the cache knows them.
func (c *Controller) changing() map[Key]bool {
	now, found := c.Now(), make(map[Key]bool)
	for _, a := range c.Cluster.Autopilots() {
		for _, p := range []*v1alpha1.Intent{a.Status.Pending, a.Status.Overtaken} {
			if p != nil && p.Kind == v1alpha1.KindFlavor && !autopilot.Stalling(*p, a.Status.Instance, now) {
				found[Key{a.Namespace, a.Name}] = true
			}
		}
	}
	return found
}
