// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

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
			calls := r.sim.Count("ces", "ListMetrics")
			r.sim.Configure(func(s *simcloud.Settings) { s.NoInstanceLevelData = true })
			time.Sleep(23 * time.Hour)
			check("with data less than a day ago", node, onInstance)
			if n := r.sim.Count("ces", "ListMetrics"); n != calls {
				t.Errorf("%s: %d requests for a known dimension", flavor, n-calls)
			}
			time.Sleep(time.Hour + time.Second)
			check("with data of the nodes only", node, onNode)
			check("with an unknown primary", "", onInstance)
			check("with a primary without data", "0123no01", onInstance)
			r.sim.Configure(func(s *simcloud.Settings) { s.NoInstanceLevelData = false })
			time.Sleep(seriesMissingFor - time.Minute)
			check("just after a list without the instance", node, onNode)
			time.Sleep(time.Minute + time.Second)
			check("with data of the instance again", node, onInstance)
		})
	}
}
