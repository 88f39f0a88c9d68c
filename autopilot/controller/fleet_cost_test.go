// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// largeFleet is a database among many others.
type largeFleet struct {
	Cache
	others []*v1alpha1.RdsAutopilot
}

func (c largeFleet) EachAutopilot(f func(*v1alpha1.RdsAutopilot)) {
	c.Cache.EachAutopilot(f)
	for _, a := range c.others {
		f(a)
	}
}

// newLargeFleet has as many others with full records, three of which change their flavor.
func newLargeFleet(t *testing.T, size int) (*world, *Controller) {
	w := newWorld(t)
	w.usedGB, w.cpu = 10, 99
	c := w.process()
	all := largeFleet{Cache: c.Cache}
	for i := range size {
		a := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("other-%04d", i)}}
		for j := range 20 {
			a.Status.Decisions = append(a.Status.Decisions, v1alpha1.DecisionRecord{Count: int32(j + 1), Message: "One sentence a person understands"})
		}
		if i < 3 {
			a.Status.Pending = &v1alpha1.Intent{Kind: v1alpha1.KindFlavor, From: "small", To: "large", DecisionTime: metav1.NewMicroTime(w.now)}
		}
		all.others = append(all.others, a)
	}
	c.Cache = all
	for _, a := range all.others { // as the informer delivers them
		c.AutopilotChanged(nil, a.DeepCopy())
	}
	return w, c
}

// With 2,000 databases in CPU alarm, each of their rounds must cost what it costs among 100.
func TestAFlavorRoundCostsTheSameInALargeFleet(t *testing.T) { // not beside others, whose allocations would count
	synctest.Test(t, func(t *testing.T) {
		cost := func(size int) float64 {
			w, c := newLargeFleet(t, size)
			w.settle(t, c)
			w.settle(t, c) // ACTIVE for 15 minutes
			w.alarm(v1alpha1.MetricCPU, true)
			w.settle(t, c)
			if d := w.rap().Status.Decisions; len(d) == 0 || d[0].Reason != "FleetBrake" {
				t.Fatalf("among %d others the records are %+v, want FleetBrake", size, d)
			}
			return testing.AllocsPerRun(5, func() {
				if _, err := c.reconcile(t.Context(), database); err != nil {
					t.Fatal(err)
				}
			})
		}
		few, many := cost(100), cost(2000)
		if many > 1.1*few {
			t.Errorf("a round makes %.0f allocations among 100 databases and %.0f among 2,000", few, many)
		}
	})
}

// Until the instance's own resize list is read, a flavor of another family counts: what holds the change back is named, and not
// that there is no larger flavor.
func TestAFlavorOfAnotherFamilyWaitsForItsTurn(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w, c := newLargeFleet(t, 3)
		w.inst.Flavor = "rds.mysql.c2.large.4"
		w.changeRds(func(rds *otcv1.Rds) { rds.Spec.FlavorRef = w.inst.Flavor })
		w.settle(t, c)
		w.settle(t, c) // ACTIVE for 15 minutes
		w.alarm(v1alpha1.MetricCPU, true)
		w.settle(t, c)
		if d := w.rap().Status.Decisions; len(d) == 0 || d[0].Reason != "FleetBrake" || w.resizeLists != 0 {
			t.Errorf("records %+v after %d readings of the resize list, want FleetBrake after none", d, w.resizeLists)
		}
	})
}
