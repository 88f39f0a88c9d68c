// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// newDimensions returns a simulated cloud and a function that returns the dimension of an instance.
func newDimensions(t *testing.T, o simcloud.Options) (reads, func(inst autopilot.Instance) (string, error)) {
	r := newReads(t, 1000, o)
	return r, func(inst autopilot.Instance) (string, error) { return r.Dimension(t.Context(), inst) }
}

func TestDimensionIsTheOneThatHasData(t *testing.T) {
	for flavor, want := range map[string][3]string{
		"rds.mysql.c2.medium":  {"MySQL", "rds_cluster_id", "rds_instance_id"},
		"rds.pg.n1.large.4.ha": {"PostgreSQL", "postgresql_cluster_id", "postgresql_instance_id"},
		"rds.mssql.n1.large.4": {"SQLServer", "rds_cluster_sqlserver_id", "rds_instance_sqlserver_id"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, dimension := newDimensions(t, simcloud.Options{})
			in, err := r.sim.AddInstance(simcloud.Instance{Flavor: flavor, VolumeGB: 100})
			if err != nil {
				t.Fatal(err)
			}
			node := in.Nodes[0].ID
			check := func(when, primary, expected string) {
				t.Helper()
				got, err := dimension(autopilot.Instance{ID: in.ID, Engine: want[0], Primary: primary})
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

// All callers of about the same time share one list, and one failure.
func TestDimensionsOfAFleetCostOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := true
		r, dimension := newDimensions(t, simcloud.Options{Fault: func(q *http.Request) *simcloud.Fault {
			if _, op := simcloud.OperationOf(q); op != "ListMetrics" || !refused {
				return nil
			}
			return &simcloud.Fault{Status: http.StatusForbidden, Body: `{}`}
		}})
		ids := append(r.add(t, 50), "unknown-1", "unknown-2")
		time.Sleep(10 * time.Minute)
		all := func() (failed int32) {
			var asking sync.WaitGroup
			var bad atomic.Int32
			for _, id := range ids {
				asking.Go(func() {
					if got, err := dimension(autopilot.Instance{ID: id, Engine: "MySQL", Primary: "n"}); err != nil || got != "rds_cluster_id:"+id {
						bad.Add(1)
					}
				})
			}
			asking.Wait()
			return bad.Load()
		}
		if bad := all(); bad != 52 || r.sim.Count("ces", "ListMetrics") != 1 {
			t.Errorf("%d of 52 failed in %d requests", bad, r.sim.Count("ces", "ListMetrics"))
		}
		refused = false
		time.Sleep(minUsable)
		for range 2 {
			if bad := all(); bad != 0 || r.sim.Count("ces", "ListMetrics") != 2 {
				t.Errorf("%d of 52 failed in %d requests", bad, r.sim.Count("ces", "ListMetrics")-1)
			}
			time.Sleep(seriesMissingFor - time.Minute)
		}
		if _, err := dimension(autopilot.Instance{ID: ids[0], Engine: "Oracle", Primary: "n"}); err == nil {
			t.Error("no error for an unknown engine")
		}
	})
}
