// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// takesBack are the ways to undo a patch before the operator has seen it.
var takesBack = map[string]func(*week){
	"at once":           func(w *week) { w.takeBack(time.Millisecond) },
	"before the cache":  func(w *week) { w.takeBack(watchLag / 2) },
	"two seconds later": func(w *week) { w.takeBack(2 * time.Second) },
	"by an admission": func(w *week) {
		w.kube.onPatch(w.book.patch, func(old, r *otcv1.Rds) { r.Spec = old.Spec })
	},
}

// takeBack has a tool put back what was patched.
func (w *week) takeBack(after time.Duration) {
	w.kube.onPatch(func(p weekPatch) {
		w.book.patch(p)
		time.AfterFunc(after, func() {
			w.kube.changeRds(p.rds.Name, func(r *otcv1.Rds) { r.Spec.VolumeSize, r.Spec.FlavorRef = p.rds.Spec.VolumeSize, p.rds.Spec.FlavorRef })
		})
	}, nil)
}

// quarrel lets time pass, until it has got out of hand.
func (w *week) quarrel(span time.Duration) {
	w.away.Store(true) // it would apply what it sees, for as long as it is there
	for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(time.Minute) {
		for _, d := range w.databases {
			if len(w.patches(d.name)) > 100 {
				return
			}
		}
	}
}

// span is a time that something may take, at least and at most.
type span struct{ least, most time.Duration }

// A writer that takes a size back at once, or seconds later, was asked 200 times a minute and flooded the record. It is asked for
// again after 1, 5 and then every 15 minutes; where the database is about to be read-only, after 10, 30 and 60 seconds.
func TestASizeThatIsTakenBackIsAskedForAgainSeldom(t *testing.T) {
	for name, takeBack := range takesBack {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				capped := func(s *v1alpha1.Spec) { s.Flavor.MaxVCPUs = new(int32(2)) }
				w := newFew(t, otcsim.Options{},
					weekDatabase{name: "roomy", start: instance(twoVCPUs, 100, 10), policy: capped},
					weekDatabase{name: "nearly", start: instance(twoVCPUs, 100, 10), policy: capped},
				)
				w.arm()
				for _, d := range w.databases { // a record that must not be lost
					w.bear(d.name, otcsim.Workload{UsedGB: 10, CPUDemand: 2})
				}
				stop := w.lead()
				time.Sleep(30 * time.Minute)
				for _, d := range w.databases {
					if !decided(w.autopilot(d.name), v1alpha1.MetricCPU, "CapReached") {
						t.Fatalf("%s: the records are %+v, want one of CPU", d.name, w.autopilot(d.name).Status.Decisions)
					}
				}
				takeBack(w)
				w.bear("roomy", otcsim.Workload{UsedGB: 91})
				w.bear("nearly", otcsim.Workload{UsedGB: 94}) // a GB from read-only, which begins below 5 GB free
				w.quarrel(3 * time.Hour)
				stop()
				w.askedAgain("roomy", []span{
					{time.Minute, 2 * time.Minute}, {4 * time.Minute, 6 * time.Minute}, {10 * time.Minute, 16 * time.Minute}, {14 * time.Minute, 16 * time.Minute},
				})
				w.askedAgain("nearly", []span{
					{10 * time.Second, 20 * time.Second}, {20 * time.Second, 45 * time.Second}, {30 * time.Second, 75 * time.Second}, {55 * time.Second, 75 * time.Second},
				})
				for _, d := range w.databases {
					w.contested(d.name)
					a := w.autopilot(d.name)
					if !decided(a, v1alpha1.MetricCPU, "CapReached") {
						t.Errorf("%s: the record of CPU is flooded out by %+v", d.name, a.Status.Decisions)
					}
				}
			})
		})
	}
}

// askedAgain checks how long after each other the patches came; the last span is that of all that follow.
func (w *week) askedAgain(name string, spans []span) {
	w.t.Helper()
	patches := w.patches(name)
	if len(patches) <= len(spans)+1 {
		w.t.Errorf("%s: patched %d times in three hours; it is to be asked for again", name, len(patches))
		return
	}
	for i := range patches[1:] {
		want := spans[min(i, len(spans)-1)]
		gap := patches[i+1].at.Sub(patches[i].at)
		if gap < want.least-time.Second || gap > want.most {
			w.t.Errorf("%s: patch %d of %d comes %v after the one before, want %v to %v", name, i+2, len(patches), gap, want.least, want.most)
			for _, p := range patches[:min(len(patches), 8)] {
				w.t.Logf("%s: to %d GB at %s, intent of %s", name, p.volumeGB, p.at.Format("15:04:05.000"), p.intent.DecisionTime.Format("15:04:05.000"))
			}
			return
		}
		if patches[i+1].volumeGB != patches[0].volumeGB {
			w.t.Errorf("%s: patched to %d GB and then to %d GB for the same used space", name, patches[0].volumeGB, patches[i+1].volumeGB)
		}
	}
}

// contested checks that the condition says so, and that people were warned, soon.
func (w *week) contested(name string) {
	w.t.Helper()
	a := w.autopilot(name)
	if !meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionContested) {
		w.t.Errorf("%s: the conditions are %+v, want Contested True", name, a.Status.Conditions)
	}
	first := w.patches(name)[0].at
	if at := w.warned(name, "Contested"); at.IsZero() || at.Sub(first) > 2*time.Minute {
		w.t.Errorf("%s: warned of Contested %v after the first patch (%v), want within 2 minutes", name, at.Sub(first), at)
	}
}

// A flavor costs a restart: it is asked for twice at most, however fast it is taken back.
func TestAFlavorThatIsTakenBackIsNotAskedForAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		span time.Duration
	}{
		{"at once", 3 * time.Hour}, {"before the cache", 3 * time.Hour}, {"two seconds later", 3 * time.Hour}, {"by an admission", 25 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				impatient := func(s *v1alpha1.Spec) { s.Flavor.CooldownSeconds = new(int32(0)) }
				w := newFew(t, otcsim.Options{}, weekDatabase{name: "db", start: instance(twoVCPUs, 100, 10), policy: impatient})
				w.arm()
				stop := w.lead()
				takesBack[c.name](w)
				w.bear("db", otcsim.Workload{UsedGB: 10, CPUDemand: 2})
				w.quarrel(c.span)
				stop()
				patches := w.patches("db")
				if len(patches) == 0 || len(patches) > 2 {
					t.Fatalf("the flavor is patched %d times in %v, want once, or twice", len(patches), c.span)
				}
				w.contested("db")
				if a := w.autopilot("db"); slices.ContainsFunc(a.Status.Changes, func(ch v1alpha1.Change) bool { return ch.Outcome == v1alpha1.OutcomeCompleted }) {
					t.Errorf("the changes are %+v, though none came", a.Status.Changes)
				}
			})
		})
	}
}
