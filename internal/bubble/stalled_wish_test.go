// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// A size or flavor that a person wrote and that the cloud refuses holds our own changes back, but not quietly for ever:
// after 15 minutes it is Stalled, a restart in between does not begin anew, and a disk that is read-only or nearly so
// gets a size that the cloud can make.
func TestSomebodyElsesWishThatCannotComeIsStalled(t *testing.T) {
	const stall = 15 * time.Minute
	level.InBubble(t, func(t *testing.T) {
		w := newFew(t, otcsim.Options{},
			weekDatabase{name: "roomy", start: instance(twoVCPUs, 100, 10)},  // 3 GB from read-only, which begins below 5 GB free
			weekDatabase{name: "nearly", start: instance(twoVCPUs, 100, 10)}, // half a GB from it
			weekDatabase{name: "full", start: instance(twoVCPUs, 100, 10)},
			weekDatabase{name: "flavor", start: instance(twoVCPUs, 100, 10)},
		)
		w.arm()
		for name, load := range map[string]otcsim.Workload{
			"roomy": {UsedGB: 92}, "nearly": {UsedGB: 94.5}, "full": {UsedGB: 99.5}, "flavor": {UsedGB: 10, CPUDemand: 2},
		} {
			w.refused[name] = true
			w.bear(name, load)
			w.kube.changeRds(name, func(r *otcv1.Rds) {
				if name == "flavor" {
					r.Spec.FlavorRef = "rds.mysql.n1.nonesuch.4"
				} else {
					r.Spec.VolumeSize = 105
				}
			})
		}
		w.allAlarmed()
		begin := time.Now()
		stop := w.lead()
		time.Sleep(5 * time.Minute)
		stop() // five minutes more
		stop = w.lead()
		time.Sleep(8 * time.Minute) // 18 minutes
		for name, metric := range map[string]v1alpha1.Metric{"roomy": v1alpha1.MetricStorage, "flavor": v1alpha1.MetricCPU} {
			at := w.warned(name, "Stalled")
			if at.IsZero() || at.Sub(begin) < stall {
				t.Errorf("%s: warned of Stalled after %v (%v), want %v and little more", name, at.Sub(begin), at, stall)
			}
			if a := w.autopilot(name); !decided(a, metric, "Stalled") {
				t.Errorf("%s: the records are %+v, want Stalled", name, a.Status.Decisions)
			}
			if p := w.patches(name); len(p) > 0 {
				t.Errorf("%s: patched to %d GB, flavor %q over what a person asked for", name, p[0].volumeGB, p[0].flavor)
			}
		}
		time.Sleep(12 * time.Minute)
		stop()
		for name, want := range map[string]int{"nearly": 110, "full": 120} {
			if p := w.patches(name); len(p) != 1 || p[0].volumeGB != want {
				t.Errorf("%s: the patches are %+v, want one to %d GB", name, p, want)
			}
		}
		if in, _ := w.sim.Instance(w.ids["nearly"]); in.VolumeGB != 110 {
			t.Errorf("nearly has %d GB in the cloud, want 110", in.VolumeGB)
		}
	})
}
