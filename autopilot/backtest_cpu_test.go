// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// restarts is what became of the flavor of a database.
type restarts struct {
	all, withoutEffect, fullHours int
	flavor                        string
}

func (r restarts) String() string {
	return fmt.Sprintf("%d restarts, %d without effect, %d h at 100 %%", r.all, r.withoutEffect, r.fullHours)
}

// replayCPU runs a database of 2 vCPUs against a CPU demand in percent of these, one average in 5 minutes. A larger flavor
// serves the same demand with more vCPUs; a change takes 10 minutes. withLoad tells the decisions the load after a change.
func replayCPU(t *testing.T, demand []float64, withLoad bool) (r restarts) {
	t.Helper()
	c := quiet()
	base, _ := flavors.Find(c.Catalogue, "rds.mysql.n1.large.4")
	c.Instance.Flavor, c.Wanted.Flavor, c.Instance.VCPUs, c.Instance.MemoryGB = base.Code, base.Code, base.VCPUs, base.MemoryGB
	c.Status.Baseline.VCPUs, c.Status.Baseline.MemoryGB = int32(4*base.VCPUs), int32(4*base.MemoryGB)
	var cpu []Point
	over, full, ready := 0, 0, -1
	for i, wants := range demand {
		c.Now = noon().Add(time.Duration(i) * 5 * time.Minute)
		if i == ready {
			to, _ := flavors.Find(c.Catalogue, c.Status.Pending.To)
			c.Instance.Flavor, c.Wanted.Flavor, c.Instance.VCPUs, c.Instance.MemoryGB = to.Code, to.Code, to.VCPUs, to.MemoryGB
			c.Status.Changes = prependChange(c.Status.Changes, c.endIntent(c.Status.Pending, v1alpha1.OutcomeCompleted))
			c.Status.Instance.Flavor, c.Status.Instance.ActiveSince, c.Status.Pending = to.Code, &metav1.Time{Time: c.Now}, nil
			over, ready = 0, -1
		}
		percent := min(100, wants*float64(base.VCPUs)/float64(c.Instance.VCPUs))
		if percent == 100 {
			full++
		}
		cpu = append(cpu, Point{c.Now, percent})
		if over++; percent < 90 {
			over = 0
		}
		c.Load = Series{"rds001_cpu_util": cpu[max(0, len(cpu)-12):]}
		if c.NeedsLoadAfter() {
			before := c.Status.Changes[0]
			c.RecordLoadAfter(c.Load)
			after, _ := percentAfter(c.Status.Changes[0], v1alpha1.MetricCPU)
			if was, _ := strconv.ParseFloat(before.ValuePercent, 64); after >= was-effectPoints {
				r.withoutEffect++
			}
		}
		if over < 3 || c.Status.Pending != nil {
			continue
		}
		decided := c.with(Alarm{Metric: v1alpha1.MetricCPU, State: v1alpha1.StateAlarm, StateTime: c.Now, Evidence: Evidence{Time: c.Now, Percent: percent}})
		if !withLoad {
			decided.Status.Changes = slices.Clone(c.Status.Changes)
			for j := range decided.Status.Changes {
				decided.Status.Changes[j].After = nil
			}
		}
		if v := Decide(decided); v.Intent != nil {
			c.Status.Pending, ready = v.Intent, i+2
			r.all++
		}
	}
	r.fullHours, r.flavor = full/12, c.Instance.Flavor
	return r
}

// The load of two real databases, scaled so that their peaks need a larger flavor.
func TestLoadAfterAFlavorIsNeverWorseForRealDatabases(t *testing.T) {
	f, err := os.Open("testdata/backtest/cpu.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for column, name := range rows[0] {
		for _, scale := range []float64{1, 6, 8, 16, 32} {
			var demand []float64
			for _, row := range rows[1:] {
				percent, err := strconv.ParseFloat(row[column], 64)
				if err != nil {
					t.Fatal(err)
				}
				demand = append(demand, scale*percent)
			}
			before, now := replayCPU(t, demand, false), replayCPU(t, demand, true)
			t.Logf("| %s | %.0f | %s | %s |", name, scale, before, now)
			if now.withoutEffect > before.withoutEffect || now.fullHours > before.fullHours {
				t.Errorf("%s × %.0f: %s, before %s", name, scale, now, before)
			}
			if scale == 1 && now.all > 0 {
				t.Errorf("%s: %s at its own load", name, now)
			}
		}
	}
}
