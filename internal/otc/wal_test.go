// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// A wrong name, unit or dimension of a gauge fails here.
func TestWALIsReadInOneRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		gauges map[string]float64
		want   autopilot.WAL
	}{
		"both": {
			map[string]float64{"rds040_transaction_logs_usage": 41 * 1024, "inactive_logical_replication_slot": 2},
			autopilot.WAL{GB: 41, InactiveSlots: 2},
		},
		"no gauge of slots": {map[string]float64{"rds040_transaction_logs_usage": 512}, autopilot.WAL{GB: 0.5}},
		"no gauge":          {nil, autopilot.WAL{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReads(t, 5, simcloud.Options{})
				in, err := r.sim.AddInstance(simcloud.Instance{
					Flavor: "rds.pg.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 92, Metrics: tc.gauges},
				})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(15 * time.Minute)
				r.sim.ResetRequests()
				inst := autopilot.Instance{ID: in.ID, Engine: in.Engine, VolumeGB: in.VolumeGB}
				got, err := r.WAL(t.Context(), inst, "")
				if n := r.sim.Count("ces", ""); err != nil || got != tc.want || n != 1 {
					t.Errorf("%+v with %d requests, %v; want %+v with one", got, n, err, tc.want)
				}
			})
		})
	}
}
