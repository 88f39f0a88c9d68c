// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"net/http"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// TestSweepRemovesOrphansOfItsOwnClusterOnly has two clusters in one tenant. Package alarms tests which names are orphans.
func TestSweepRemovesOrphansOfItsOwnClusterOnly(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		a := newFleet(t, simcloud.Settings{})
		b := a.another()
		a.runCloud()
		a.database("default", "db", plain())
		b.database("default", "db", plain())
		inA, inB := a.start(flags{sweep: 2 * time.Minute}), b.start(flags{sweep: 2 * time.Minute})
		ofA := a.armedNow("default", "db")
		hadB := b.whole(t, b.armedNow("default", "db"))
		foreign := func(s *service) float64 { return s.metric("rds_autopilot_foreign_objects") }
		inA.swept()
		inB.swept()
		if foreign(inA) != 4 || foreign(inB) != 4 {
			t.Errorf("foreign objects: %g and %g, want the 4 of the other cluster", foreign(inA), foreign(inB))
		}

		// An autopilot that is deleted by force leaves orphans in A, which B must not touch.
		inA.rest()
		inA.stop()
		a.patch(a.rdss("default"), "db", `{"spec":{"autopilot":null}}`)
		a.force("db")
		inB.swept()
		inB.swept()
		if n := a.thingsOf(name(ofA)).count(); n != 5 {
			t.Errorf("%d of 5 things of A are left by B", n)
		}
		inA = a.start(flags{sweep: 2 * time.Minute})
		a.gone(ofA)

		// The same while it runs: the RdsAutopilot that is made again is not an orphan.
		a.patch(a.rdss("default"), "db", `{"spec":{"autopilot":true}}`)
		again := a.armedNow("default", "db")
		a.force("db")
		a.until("there is another one", func() bool {
			now := a.autopilot("default", "db")
			return now != nil && now.UID != again.UID && isArmed(now)
		})
		a.gone(again)
		inA.swept()
		a.whole(t, a.autopilot("default", "db"))
		if err := same(hadB, b.whole(t, b.armedNow("default", "db"))); err != nil {
			t.Errorf("the other cluster: %v", err)
		}
	})
}

// force deletes an autopilot past its finalizer, before the service can do what that stands for.
func (f *fleet) force(db string) {
	f.t.Helper()
	mend := f.breaks(func(*http.Request) *simcloud.Fault { return &simcloud.Fault{Status: http.StatusForbidden} })
	defer mend()
	was := f.autopilot("default", db)
	f.delete(f.raps("default"), db)
	f.patch(f.raps("default"), db, `{"metadata":{"finalizers":null}}`)
	if f.thingsOf(name(was)).count() != 5 {
		f.t.Fatal("there are no orphans to be")
	}
}

// TestNamespaceThatNobodyWatchesIsCounted takes a namespace out of --watch-namespaces too early, and goes the way back.
func TestNamespaceThatNobodyWatchesIsCounted(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.runCloud()
		left := f.namespace("left")
		f.database("default", "db", plain())
		f.database(left, "db", plain())
		unwatched := func(s *service) float64 { s.swept(); return s.metric("rds_autopilot_unwatched_objects") }
		both, one := flags{sweep: 2 * time.Minute, namespaces: []string{"default", left}}, flags{sweep: 2 * time.Minute, namespaces: []string{"default"}}
		s := f.start(both)
		f.armedNow("default", "db")
		f.armedNow(left, "db")
		if n := unwatched(s); n != 0 {
			t.Errorf("%g objects that nobody watches, want none", n)
		}
		s.rest()
		s.stop()

		s = f.start(one)
		if n := unwatched(s); n != 4 {
			t.Errorf("%g objects that nobody watches, want a topic and three rules", n)
		}
		s.rest()
		s.stop()

		s = f.start(both)
		f.patch(f.raps(left), "db", `{"spec":{"mode":"Off"}}`)
		f.until("its finalizer is removed", func() bool { return len(f.autopilot(left, "db").Finalizers) == 0 })
		s.rest()
		s.stop()
		s = f.start(one)
		if n := unwatched(s); n != 0 {
			t.Errorf("%g objects that nobody watches after the way back, want none", n)
		}
	})
}
