// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// memory is what this process remembers about one database. Without it there are extra calls, a repeated event, and the
// larger of two sizes counts for some minutes.
type memory struct {
	ensured *ensureRecord    // last Ensure; nil if this process has called none
	cleared time.Time        // when this process has removed the rules; zero after Ensure
	patched *v1alpha1.Change // our last patch of the Rds that the API server may have accepted
	stale   bool             // the last round ended in a conflict, so the cache may still be old
	warned  types.UID        // Rds with an event about the operator's own autopilot

	volumeGB         int       // at the last check
	seen, formerSeen time.Time // when a check last saw this size, and the one before
}

// remember calls change with the memory of a database, and creates the memory if there is none.
func (c *Controller) remember(key Key, change func(*memory)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.memories[key]
	if m == nil {
		m = &memory{}
		c.memories[key] = m
	}
	change(m)
}

// recall returns a copy of a database's memory, or the zero value.
func (c *Controller) recall(key Key) memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.memories[key]; m != nil {
		return *m
	}
	return memory{}
}

func (c *Controller) drop(key Key) {
	c.limiter.drop(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.memories, key)
}
