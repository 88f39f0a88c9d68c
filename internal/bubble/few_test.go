// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// newFew is a world of few databases, in a bubble. All that is told of them is kept.
func newFew(t *testing.T, o otcsim.Options, databases ...weekDatabase) *week {
	w := &week{databases: databases, refused: map[string]bool{}}
	w.settle(t, o)
	w.book.begin = time.Time{}
	return w
}

// lead starts a process at the default --cloud-rate, on a cloud and an API server as slow as real ones.
func (w *week) lead() (stop func()) {
	w.latency = cloudLatency
	w.kube.SetWriteLatency(writeLatency)
	ended := w.start(app.Defaults().CloudRate)
	return func() {
		ended()
		time.Sleep(5 * time.Minute) // for what is shared and belongs to no round: a bubble waits for nobody
	}
}

// armed lets a process arm all databases, and ends it.
func (w *week) arm() {
	stop := w.lead()
	time.Sleep(10 * time.Minute)
	w.allArmed("at first")
	stop()
}

func (w *week) bear(name string, load otcsim.Workload) {
	w.t.Helper()
	if err := w.sim.SetWorkload(w.ids[name], load); err != nil {
		w.t.Fatal(err)
	}
}

// allAlarmed waits until a rule of each database is in alarm, whether or not anybody hears of it.
func (w *week) allAlarmed() {
	w.t.Helper()
	for range 60 {
		time.Sleep(time.Minute)
		alarmed := map[string]bool{}
		for _, r := range w.sim.Rules() {
			if r.State == "alarm" {
				alarmed[r.Metric.Dimensions[0].Value] = true
			}
		}
		if len(alarmed) == len(w.databases) {
			return
		}
	}
	w.t.Fatal("no alarm of each database within an hour")
}

// patches of a database, in their order.
func (w *week) patches(name string) []weekPatchAt {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	return slices.Clone(w.book.page(name).patches)
}

// warned is when people were first warned with this reason; the zero time if they were not.
func (w *week) warned(name, reason string) time.Time {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	for _, e := range w.book.page(name).events {
		if e.Warning && e.Reason == reason {
			return e.at
		}
	}
	return time.Time{}
}

func (w *week) autopilot(name string) *v1alpha1.RdsAutopilot {
	w.t.Helper()
	a := w.fleet.autopilot(weekNamespace, name)
	if a == nil {
		w.t.Fatalf("there is no RdsAutopilot %s", name)
	}
	return a
}

func (w *week) liveRdsOf(name string) *otcv1.Rds {
	all := w.kube.liveRds()
	return all[slices.IndexFunc(all, func(r *otcv1.Rds) bool { return r.Name == name })]
}

// decided reports whether a record with this metric and reason is in the status.
func decided(a *v1alpha1.RdsAutopilot, metric v1alpha1.Metric, reason string) bool {
	return slices.ContainsFunc(a.Status.Decisions, func(d v1alpha1.DecisionRecord) bool { return d.Metric == metric && d.Reason == reason })
}
