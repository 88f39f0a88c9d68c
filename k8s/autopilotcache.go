// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/mcsps/rds-autopilot/autopilot/ownwrites"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Autopilot returns the RdsAutopilot as last seen or, where that is newer, as last written or read anew, and whether there is one.
func (w *Cache) Autopilot(namespace, name string) (*autopilotv1.RdsAutopilot, bool) {
	p, ok := w.newest(namespace, name)
	if !ok || p.IsDoctors() {
		return nil, false
	}
	return p.unpack(), true
}

func (w *Cache) newest(namespace, name string) (*packed, bool) {
	p, ok := w.autopilots.peek(namespace, name)
	if !ok {
		return nil, false
	}
	return w.written.Newest(types.NamespacedName{Namespace: namespace, Name: name}, p), true
}

// EachAutopilot calls f with every RdsAutopilot as last seen, in no order, and without its history: changes, former volumes and
// decisions.
func (w *Cache) EachAutopilot(f func(*autopilotv1.RdsAutopilot)) {
	w.autopilots.each(func(p *packed) {
		if !p.IsDoctors() {
			f(&p.RdsAutopilot)
		}
	})
}

// ByTopic returns the autopilots whose status has the topic's URN, without their history. It is the only one to return those of doctor,
// for whose messages the receiver answers, and which stand for no database.
func (w *Cache) ByTopic(topicURN string) []*autopilotv1.RdsAutopilot {
	var found []*autopilotv1.RdsAutopilot
	for _, p := range w.autopilots.by(byTopic, topicURN) {
		found = append(found, &p.RdsAutopilot)
	}
	return found
}

// SignedBefore reports whether any autopilot's last stored message was signed with the certificate at that URL.
func (w *Cache) SignedBefore(certURL string) bool {
	return slices.ContainsFunc(w.autopilots, func(inf cache.SharedIndexInformer) bool {
		return slices.Contains(inf.GetIndexer().ListIndexFuncValues(byCert), certURL) // one or two
	})
}

// OnAutopilot is OnTarget for RdsAutopilots. Their history is left out.
func (w *Cache) OnAutopilot(f func(old, new *autopilotv1.RdsAutopilot)) error {
	whole := func(p *packed) *autopilotv1.RdsAutopilot {
		if p == nil {
			return nil
		}
		return &p.RdsAutopilot
	}
	return addHandler(w, w.autopilots, func(old, new *packed) {
		if !cmp.Or(new, old).IsDoctors() {
			f(whole(old), whole(new))
		}
	})
}

// isBehind reports whether the cache has an older version of the object. Where it has none, the watch will tell of all of it.
func (w *Cache) isBehind(a *autopilotv1.RdsAutopilot) bool {
	cached, ok := w.autopilots.peek(a.Namespace, a.Name)
	return ok && ownwrites.IsBefore(&cached.RdsAutopilot, a)
}

// keep has Autopilot return what was just written or read anew until the watch brings it.
func (w *Cache) keep(a *autopilotv1.RdsAutopilot) {
	if !w.isBehind(a) {
		return
	}
	if p, err := pack(a); err == nil { // else the watch fails as well, and says why
		w.written.Keep(types.NamespacedName{Namespace: a.Namespace, Name: a.Name}, p)
	}
}

// keepIntake is keep for an intake that was written on top of a version. It reports whether the watch was slower.
func (w *Cache) keepIntake(version string, stored *autopilotv1.RdsAutopilot) bool {
	p, ok := w.newest(stored.Namespace, stored.Name)
	if !ok || p.ResourceVersion != version || !w.isBehind(stored) {
		return false
	}
	next := *p // with its history, which stored lacks
	next.ObjectMeta, next.Status.Intake = stored.ObjectMeta, stored.Status.Intake
	w.written.Keep(types.NamespacedName{Namespace: stored.Namespace, Name: stored.Name}, &next)
	return true
}

func (w *Cache) forgetWritten(old, new *packed) {
	if new == nil {
		w.written.Forget(types.NamespacedName{Namespace: old.Namespace, Name: old.Name})
		return
	}
	w.written.Arrived(types.NamespacedName{Namespace: new.Namespace, Name: new.Name}, new)
}
