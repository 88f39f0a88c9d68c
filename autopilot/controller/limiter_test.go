// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestFlavorLimiterReservesPlacesUntilReleased(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	key := func(name string) Key { return Key{"ns", name} }
	l := newFlavorLimiter(cachedAutopilots{})
	first, second, third := l.reserve(key("a"), 2, now), l.reserve(key("b"), 2, now), l.reserve(key("c"), 2, now)
	if !first || !second || third || !l.reserve(key("a"), 2, now) {
		t.Errorf("reserved %t, %t, %t; want the two places for the first two", first, second, third)
	}
	l.release(key("b"))
	if !l.reserve(key("c"), 2, now) {
		t.Error("a released place is not free")
	}
}

// The table of the book says which changes hold a place. The watch may lag by minutes while a flavor changes.
func TestFlavorLimiterCountsWhatIsStoredAlthoughTheCacheIsOld(t *testing.T) {
	now, key := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Key{"ns", "a"}
	cached := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	stored := cached.DeepCopy()
	at := metav1.NewMicroTime(now)
	stored.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindFlavor, By: v1alpha1.ByAutopilot, State: v1alpha1.StateRequested, RequestTime: &at}}
	l := newFlavorLimiter(cachedAutopilots{autopilots: []*v1alpha1.RdsAutopilot{cached}})
	check := func(when string, has bool) {
		t.Helper()
		other := Key{"ns", "b"}
		if free := l.reserve(other, 1, now); free == has {
			t.Errorf("%s: has its place %t, want %t", when, !free, has)
		}
		l.release(other)
	}
	check("without a change", false)
	l.store(stored)
	check("stored", true)
	if !l.reserve(key, 1, now) {
		t.Error("its own change counts against it")
	}
	l.release(key)
	check("after its round", true)
	l.store(cached)
	check("after the change", false)
	*cached = *stored
	l.drop(key)
	check("in the cache alone", true)
}
