// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const usedSpace = "rds048_disk_used_size"

// breakUsedSpace makes Cloud Eye return a fault in place of the used space of an instance.
func (r reads) breakUsedSpace(t *testing.T, id string, fault simcloud.SeriesFault) {
	t.Helper()
	fault.All = true
	err := r.sim.ChangeInstance(id, func(in *simcloud.Instance) {
		in.SeriesFaults = map[string]simcloud.SeriesFault{usedSpace: fault}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMalformedUsedSpaceHidesNeitherItsPercentageNorOtherSeries(t *testing.T) {
	for name, fault := range map[string]simcloud.SeriesFault{
		"a text": {Value: `"a lot"`}, "NaN": {Value: "NaN"}, "refused": {Refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReads(t, 20, simcloud.Options{})
				ids := r.add(t, 5)
				time.Sleep(10 * time.Minute)
				r.breakUsedSpace(t, ids[2], fault)
				var all sync.WaitGroup
				for _, id := range ids {
					all.Go(func() {
						inst := autopilot.Instance{ID: id, Engine: "MySQL", VolumeGB: 100}
						e, err := r.Evidence(t.Context(), inst, autopilot.EvidenceRequest{Metric: v1alpha1.MetricStorage})
						if err != nil || e.UsedGB != 50 { // of the malformed one by its percentage
							t.Errorf("database %s: %+v, %v", id, e, err)
						}
					})
				}
				all.Wait()
			})
		})
	}
}

func TestPastReadsAllSeriesOfADatabaseInOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{})
		id := r.add(t, 1)[0]
		if err := r.sim.SetWorkload(id, simcloud.Workload{UsedGB: 60, CPUDemand: 1, MemoryDemandGB: 2}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(23 * time.Hour)
		r.sim.ResetRequests()
		since := time.Now().Add(-14 * 24 * time.Hour)
		p, err := r.Past(t.Context(), autopilot.Instance{ID: id, Engine: "MySQL"}, "", time.Hour, since)
		if n := r.sim.Count("ces", ""); n != 1 || err != nil {
			t.Errorf("%d requests, %v", n, err)
		}
		for name, of := range map[string]struct {
			points []autopilot.Point
			want   float64
		}{
			"used": {p.UsedGB, 60}, "size": {p.SizeGB, 100}, "storage": {p.Percent[v1alpha1.MetricStorage], 60},
			"cpu": {p.Percent[v1alpha1.MetricCPU], 50}, "memory": {p.Percent[v1alpha1.MetricMemory], 25},
		} {
			if n := len(of.points); n < 21 || n > 25 || of.points[n-1].Value != of.want {
				t.Errorf("%s: %d points, %v", name, n, of.points)
			}
		}
	})
}

// A wrong name, unit or dimension of a gauge fails here.
func TestWALIsReadInOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{})
		check := func(gauges map[string]float64, want autopilot.WAL) {
			t.Helper()
			in, err := r.sim.AddInstance(simcloud.Instance{
				Flavor: "rds.pg.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 92, Metrics: gauges},
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(15 * time.Minute)
			r.sim.ResetRequests()
			got, err := r.WAL(t.Context(), autopilot.Instance{ID: in.ID, Engine: in.Engine, VolumeGB: in.VolumeGB}, "")
			if n := r.sim.Count("ces", ""); err != nil || got != want || n != 1 {
				t.Errorf("%+v with %d requests, %v; want %+v with one", got, n, err, want)
			}
		}
		check(map[string]float64{"rds040_transaction_logs_usage": 41 * 1024, "inactive_logical_replication_slot": 2},
			autopilot.WAL{GB: 41, InactiveSlots: 2})
		check(map[string]float64{"rds040_transaction_logs_usage": 512}, autopilot.WAL{GB: 0.5})
	})
}

func TestDimensionIsTheOneThatHasData(t *testing.T) {
	for flavor, want := range map[string][3]string{
		"rds.mysql.c2.medium":  {"MySQL", "rds_cluster_id", "rds_instance_id"},
		"rds.pg.n1.large.4.ha": {"PostgreSQL", "postgresql_cluster_id", "postgresql_instance_id"},
		"rds.mssql.n1.large.4": {"SQLServer", "rds_cluster_sqlserver_id", "rds_instance_sqlserver_id"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newReads(t, 1000, simcloud.Options{})
			in, err := r.sim.AddInstance(simcloud.Instance{Flavor: flavor, VolumeGB: 100})
			if err != nil {
				t.Fatal(err)
			}
			node := in.Nodes[0].ID
			check := func(when, primary, expected string) {
				t.Helper()
				got, err := r.Dimension(t.Context(), autopilot.Instance{ID: in.ID, Engine: want[0], Primary: primary})
				if got != expected || err != nil {
					t.Errorf("%s, %s: %s, %v; want %s", flavor, when, got, err, expected)
				}
			}
			onInstance, onNode := want[1]+":"+in.ID, want[2]+":"+node
			check("without any data", node, onInstance)
			time.Sleep(30 * time.Minute)
			r.sim.Step(t.Context())
			check("with data of both", node, onInstance)
			r.sim.Configure(func(s *simcloud.Settings) { s.NoInstanceLevelData = true })
			time.Sleep(23 * time.Hour)
			check("with data less than a day ago", node, onInstance)
			time.Sleep(time.Hour + time.Second)
			check("with data of the nodes only", node, onNode)
			check("with an unknown primary", "", onInstance)
			r.sim.Configure(func(s *simcloud.Settings) { s.NoInstanceLevelData = false })
			time.Sleep(seriesMissingFor - time.Minute)
			check("just after a list without the instance", node, onNode)
			time.Sleep(time.Minute + time.Second)
			check("with data of the instance again", node, onInstance)
		})
	}
}
