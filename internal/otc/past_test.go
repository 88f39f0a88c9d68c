// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

func TestPastReadsAllSeriesOfADatabaseInOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{})
		id := r.add(t, 1)[0]
		for _, usedGB := range []float64{50, 60} {
			w := simcloud.Workload{UsedGB: usedGB, CPUDemand: 1, MemoryDemandGB: 2}
			if err := r.sim.SetWorkload(id, w); err != nil {
				t.Fatal(err)
			}
			time.Sleep(11*time.Hour + 30*time.Minute)
		}
		past := func(period, length time.Duration) autopilot.Past {
			t.Helper()
			r.sim.ResetRequests()
			past, err := r.Past(t.Context(), autopilot.Instance{ID: id, Engine: "MySQL"}, "", period, time.Now().Add(-length))
			if n := r.sim.Count("ces", ""); n != 1 || err != nil {
				t.Errorf("%d requests, %v", n, err)
			}
			return past
		}
		p := past(time.Hour, 14*24*time.Hour)
		for name, of := range map[string]struct {
			points      []autopilot.Point
			first, last float64
		}{
			"used": {p.UsedGB, 50, 60}, "size": {p.SizeGB, 100, 100}, "storage": {p.Percent[v1alpha1.MetricStorage], 50, 60},
			"cpu": {p.Percent[v1alpha1.MetricCPU], 50, 50}, "memory": {p.Percent[v1alpha1.MetricMemory], 25, 25},
		} {
			n := len(of.points)
			if n < 21 || n > 25 || of.points[1].Value != of.first || of.points[n-1].Value != of.last {
				t.Errorf("%s: %d points, %v", name, n, of.points)
			}
		}
		if n := len(past(5*time.Minute, time.Hour).UsedGB); n < 10 || n > 12 {
			t.Errorf("%d points of five minutes in an hour", n)
		}
		r.sim.Configure(func(s *simcloud.Settings) { s.NoUsedSpace = true })
		if p := past(time.Hour, 24*time.Hour); len(p.UsedGB) != 0 || len(p.Percent[v1alpha1.MetricStorage]) == 0 {
			t.Errorf("without the used space: %+v", p)
		}
	})
}
