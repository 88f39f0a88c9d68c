// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// switchTracker keeps the last explicit value of spec.autopilot of each Rds until the status has it. The archived
// operator drops the field within a second, so the cache may not have it any more when a round begins. Every replica
// tracks it, because the leader may change within that second.
type switchTracker struct {
	mu   sync.Mutex
	last map[Key]v1alpha1.Switch
}

// observe records the switch of a target; nil means that the Rds is gone. It also records a value that the status has
// already, because an earlier value may be on its way into the status.
func (s *switchTracker) observe(k Key, t *autopilot.Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t == nil {
		delete(s.last, k)
	} else if t.Switch != "" {
		s.last[k] = v1alpha1.Switch{Value: t.Switch, UID: t.UID}
	}
}

func (s *switchTracker) of(k Key) v1alpha1.Switch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[k]
}

func (s *switchTracker) stored(k Key, stored v1alpha1.Switch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last[k] == stored {
		delete(s.last, k)
	}
}

// deleted notes that an RdsAutopilot was deleted. If a person deletes it, an earlier spec.autopilot: true must not
// create it again. If it is garbage of a former Rds of its name, the present Rds still has its switch.
func (s *switchTracker) deleted(k Key, a *v1alpha1.RdsAutopilot, t *autopilot.Target) {
	s.stored(k, a.Status.Switch)
	isGarbage := slices.ContainsFunc(a.OwnerReferences, func(o metav1.OwnerReference) bool {
		return t != nil && o.Kind == "Rds" && o.UID != t.UID
	})
	if isGarbage && a.Status.Switch.UID == t.UID {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.last[k] == (v1alpha1.Switch{}) {
			s.last[k] = a.Status.Switch
		}
	}
}
