// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// switchTracker keeps the last value of spec.autopilot of each Rds until it is in the status. The archived operator drops the
// field within a second, so that the cache may be past it when a round begins. Every replica observes, for the leader may
// change in that second.
type switchTracker struct {
	mu   sync.Mutex
	last map[Key]v1alpha1.Switch
}

// observe notes the switch of a target; nil is an Rds that is gone. It is noted even if the status has the same value, which
// may be about to change to an earlier one.
func (s *switchTracker) observe(k Key, t *autopilot.Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t == nil {
		delete(s.last, k)
	} else if t.Switch != "" {
		s.last[k] = t.Switch
	}
}

// of returns the last value that is not in the status; empty where there is none.
func (s *switchTracker) of(k Key) v1alpha1.Switch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[k]
}

// stored notes that the status has it by now, where it outlives this process.
func (s *switchTracker) stored(k Key, stored v1alpha1.Switch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last[k] == stored {
		delete(s.last, k)
	}
}
