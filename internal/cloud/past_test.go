// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

func TestPastNeedsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{})
		id := r.add(t, 1)[0]
		if err := r.sim.SetWorkload(id, simcloud.Workload{UsedGB: 50, CPUDemand: 1, MemoryDemandGB: 2}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11*time.Hour + 30*time.Minute)
		if err := r.sim.SetWorkload(id, simcloud.Workload{UsedGB: 60, CPUDemand: 1, MemoryDemandGB: 2}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11*time.Hour + 30*time.Minute)
		var wanted []controller.EvidenceRequest
		for _, m := range autopilot.Metrics() {
			wanted = append(wanted, controller.EvidenceRequest{Metric: m})
		}
		wanted[0].Dimension = "rds_cluster_id:" + id // as its rule has it; the others follow from the engine
		for _, span := range []struct {
			period, length time.Duration
			points         int
		}{{5 * time.Minute, 24 * time.Hour, 275}, {time.Hour, 14 * 24 * time.Hour, 23}} {
			r.sim.ResetRequests()
			past, err := r.Past(t.Context(), autopilot.Instance{ID: id, Engine: "MySQL"}, wanted, span.period, time.Now().Add(-span.length))
			if err != nil {
				t.Fatal(err)
			}
			if n := r.sim.Count("ces", ""); n != 1 {
				t.Errorf("%s: %d calls", span.length, n)
			}
			for name, points := range map[string][]autopilot.Point{
				"used": past.UsedGB, "size": past.SizeGB, "storage": past.Percent[v1alpha1.MetricStorage],
				"cpu": past.Percent[v1alpha1.MetricCPU], "memory": past.Percent[v1alpha1.MetricMemory],
			} {
				first, last := map[string]float64{"used": 50, "size": 100, "storage": 50, "cpu": 50, "memory": 25}[name], map[string]float64{"used": 60, "size": 100, "storage": 60, "cpu": 50, "memory": 25}[name]
				if n := len(points); n < span.points-2 || n > span.points+2 || points[1].Value != first || points[n-1].Value != last || !points[0].Time.Before(points[n-1].Time) {
					t.Errorf("%s of %s: %d points, %v", name, span.length, len(points), points[max(0, len(points)-3):])
				}
			}
		}
		r.sim.Configure(func(s *simcloud.Settings) { s.NoUsedSpace = true })
		past, err := r.Past(t.Context(), autopilot.Instance{ID: id, Engine: "MySQL"}, wanted, time.Hour, time.Now().Add(-24*time.Hour))
		if err != nil || len(past.UsedGB) != 0 || len(past.Percent[v1alpha1.MetricStorage]) == 0 {
			t.Errorf("without the used space: %v, %v", past, err)
		}
	})
}
