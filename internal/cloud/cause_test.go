// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/autopilot/insight"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// cause returns the cause that the controller finds now for an instance of the simulated cloud.
func (r reads) cause(t *testing.T, in simcloud.Instance) v1alpha1.Cause {
	t.Helper()
	inst := autopilot.Instance{ID: in.ID, Engine: in.Engine, VolumeGB: in.VolumeGB}
	c, due := autopilot.Case{Now: time.Now(), Instance: &inst}, insight.Due{Cause: true}
	h := controller.ReadHistory(t.Context(), r.Cloud, c, due)
	if h.CauseErr != nil {
		t.Fatal(h.CauseErr)
	}
	return *insight.Update(c, due, h).Cause
}

// instanceAfter returns an instance that had one workload for 5 hours and the next for another hour.
func (r reads) instanceAfter(t *testing.T, flavor string, before, after simcloud.Workload) simcloud.Instance {
	t.Helper()
	in, err := r.sim.AddInstance(simcloud.Instance{Flavor: flavor, VolumeGB: 100, Workload: before})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Hour)
	if err := r.sim.SetWorkload(in.ID, after); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour)
	r.sim.ResetRequests()
	return in
}

// Cloud Eye's names and units of the metrics (RDS umn: configuring_displayed_metrics.rst), as the cloud would send
// them.
const (
	walMB, slotFilesMB   = "rds040_transaction_logs_usage", "rds041_replication_slot_usage"
	slotLagMB            = "rds045_oldest_replication_slot_lag"
	inactiveSlots        = "inactive_logical_replication_slot"
	tempBytesPerMinute   = "temporary_files_generation_size"
	oldestMilliseconds   = "oldest_transaction_duration"
	auditGB, tempDBMB    = "pgaudit_log_size", "mssql_tempdb_disk_size"
	postgres, sqlServer  = "rds.pg.n1.large.4", "rds.mssql.n1.large.4"
	mysql                = "rds.mysql.n1.large.4"
	megabytes, gigabytes = 1024, 1e9
)

// quietPostgres returns a value of each metric, of a database in which only data grows.
func quietPostgres(change map[string]float64) map[string]float64 {
	m := map[string]float64{
		walMB: 2 * megabytes, slotFilesMB: 10, slotLagMB: 16, inactiveSlots: 0,
		tempBytesPerMinute: 20e6, oldestMilliseconds: 60e3, auditGB: 0.1,
	}
	maps.Copy(m, change)
	return m
}

// The test produces each cause in the simulated cloud, and reads it as the service does. A wrong name, unit, dimension
// or period of a metric fails here.
func TestEachCauseIsNamedFromTheCloudsData(t *testing.T) {
	const hour = 3600e3
	for name, tc := range map[string]struct {
		flavor string
		change map[string]float64 // of the last hour
		want   v1alpha1.CauseName
	}{
		"data": {postgres, nil, v1alpha1.CauseData},
		"WAL":  {postgres, map[string]float64{walMB: 41 * megabytes}, v1alpha1.CauseWAL},
		"WAL of a slot": {
			postgres, map[string]float64{walMB: 41 * megabytes, slotLagMB: 40 * megabytes, inactiveSlots: 1},
			v1alpha1.CauseReplicationSlot,
		},
		"files of a slot":         {postgres, map[string]float64{slotFilesMB: 30 * megabytes}, v1alpha1.CauseReplicationSlot},
		"temporary files":         {postgres, map[string]float64{tempBytesPerMinute: 0.6 * gigabytes}, v1alpha1.CauseTempFiles},
		"open transaction":        {postgres, map[string]float64{oldestMilliseconds: 7 * hour}, v1alpha1.CauseLongTransaction},
		"audit log":               {postgres, map[string]float64{auditGB: 30}, v1alpha1.CauseAuditLog},
		"tempdb":                  {sqlServer, map[string]float64{tempDBMB: 40 * megabytes}, v1alpha1.CauseTempFiles},
		"data of SQL Server":      {sqlServer, map[string]float64{tempDBMB: 100}, v1alpha1.CauseData},
		"no metric of SQL Server": {sqlServer, nil, v1alpha1.CauseUnknown},
		"MySQL":                   {mysql, nil, v1alpha1.CauseUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReads(t, 5, simcloud.Options{})
				before, after := tc.change, tc.change
				if tc.flavor == postgres {
					before, after = quietPostgres(nil), quietPostgres(tc.change)
				}
				in := r.instanceAfter(t, tc.flavor,
					simcloud.Workload{UsedGB: 82, Metrics: before}, simcloud.Workload{UsedGB: 92, Metrics: after})
				if c := r.cause(t, in); c.Name != tc.want {
					t.Errorf("%+v, want %s", c, tc.want)
				}
				calls := 1
				if tc.flavor == mysql {
					calls = 0
				}
				if n := r.sim.Count("ces", ""); n != calls {
					t.Errorf("%d calls, want %d", n, calls)
				}
			})
		})
	}
}

func TestCauseIsUnknownWithoutTheUsedSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{})
		r.sim.Configure(func(s *simcloud.Settings) { s.NoUsedSpace = true })
		full := quietPostgres(map[string]float64{walMB: 41 * megabytes})
		load := simcloud.Workload{UsedGB: 92, Metrics: full}
		in := r.instanceAfter(t, postgres, load, load)
		if c := r.cause(t, in); c.Name != v1alpha1.CauseUnknown {
			t.Errorf("%+v, want Unknown", c)
		}
	})
}
