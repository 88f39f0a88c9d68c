package controller

import (
	"sync"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// words are what spec.autopilot of each Rds said last and nobody has acted on yet. The archived operator drops the field
// within a second, so that the cache may be past it by the time it is asked. Every replica listens, for the leader may
// change in that second.
type words struct {
	mu   sync.Mutex
	last map[Key]v1alpha1.Switch
}

// hear notes the word of an Rds, if it has one; a database that is gone has none. It is noted whatever the status says, which
// may be about to become what was said before.
func (w *words) hear(k Key, rds *otcv1.Rds) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if rds == nil {
		delete(w.last, k)
	} else if said := spoken(rds); said != "" {
		w.last[k] = said
	}
}

// of returns the word that nobody has acted on yet; empty where there is none.
func (w *words) of(k Key) v1alpha1.Switch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[k]
}

// kept notes that a word is in the status by now, where it outlives this process.
func (w *words) kept(k Key, said v1alpha1.Switch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last[k] == said {
		delete(w.last, k)
	}
}

// spoken is the word that an Rds says now; empty where the field is absent, which says nothing.
func spoken(rds *otcv1.Rds) v1alpha1.Switch {
	switch on := rds.Spec.Autopilot; {
	case on == nil:
		return ""
	case *on:
		return v1alpha1.SwitchOn
	}
	return v1alpha1.SwitchOff
}
