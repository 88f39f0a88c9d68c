// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/otc"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// newDimensions returns a simulated cloud and a function that returns the dimension of an instance.
func newDimensions(t *testing.T, o simcloud.Options) (reads, func(inst autopilot.Instance) (string, error)) {
	r := newReads(t, 1000, o)
	return r, func(inst autopilot.Instance) (string, error) { return r.Dimension(t.Context(), inst, time.Time{}) }
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

func TestIsAnotherComparesWithPrimaryAndStandby(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own, primary, standby float64
		another, known        bool
	}{
		"the primary's":            {own: 80, primary: 80, standby: 20, known: true},
		"about the primary's":      {own: 77, primary: 80, standby: 60, known: true},
		"the standby's":            {own: 20, primary: 80, standby: 20, another: true, known: true},
		"the average of both":      {own: 50, primary: 80, standby: 20, another: true, known: true},
		"a standby that works":     {own: 15, primary: 15, standby: 90, known: true},
		"equal loads tell nothing": {own: 21, primary: 22, standby: 20},
	} {
		at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
		points := func(v float64) []otc.Datapoint {
			return []otc.Datapoint{{Time: at.Add(-5 * time.Minute), Average: 1}, {Time: at, Average: v}}
		}
		another, known := isAnother(points(c.own), points(c.primary), points(c.standby))
		if known != c.known || known && another != c.another {
			t.Errorf("%s: another %v, known %v; want %v, %v", name, another, known, c.another, c.known)
		}
	}
	if _, known := isAnother(nil, []otc.Datapoint{{Time: time.Unix(300, 0), Average: 80}}, []otc.Datapoint{{Time: time.Unix(300, 0), Average: 1}}); known {
		t.Error("without data of the instance, nothing is known")
	}
}

// A comparison with different loads counts for a day and for all instances of the engine; one with similar loads, for a
// minute.
func TestComparisonCountsForAllInstancesOfTheEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, primary := 0, 20.0
		points := newBatcher(func(_ context.Context, series []otc.Series, _ int) (map[otc.Series][]otc.Datapoint, error) {
			calls++
			found := make(map[otc.Series][]otc.Datapoint)
			for _, s := range series {
				load := 20.0 // the instance's and the standby's
				if s.Value == "n2" {
					load = primary
				}
				found[s] = []otc.Datapoint{{Time: time.Unix(300, 0), Average: load}}
			}
			return found, nil
		}, time.Now)
		p := &primaries{points: points, now: time.Now, byEngine: make(map[string]comparison)}
		ask := func(want bool, wantCalls int, nodes ...string) {
			t.Helper()
			another, err := p.showsAnother(t.Context(), autopilot.Instance{ID: "i", Engine: "MySQL", NodeIDs: nodes, Primary: "n2"}, "rds_cluster_id", "rds_instance_id", time.Time{})
			if err != nil || another != want || calls != wantCalls {
				t.Errorf("another %v, %v after %d calls; want %v after %d", another, err, calls, want, wantCalls)
			}
		}
		ask(false, 0, "n2")
		ask(false, 1, "n1", "n2")
		ask(false, 1, "n1", "n2")
		time.Sleep(compareEvery)
		primary = 90
		ask(true, 2, "n1", "n2")
		time.Sleep(compareEvery)
		primary = 20
		ask(true, 2, "n1", "n2")
		time.Sleep(comparedFor)
		ask(true, 3, "n1", "n2")
	})
}

// After a failover, the older points of both nodes are of exchanged roles. They would decide for all instances of the
// engine, for a day.
func TestPointsFromBeforeAFailoverAreNotCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failover := time.Now()
		points := newBatcher(func(_ context.Context, series []otc.Series, _ int) (map[otc.Series][]otc.Datapoint, error) {
			found := make(map[otc.Series][]otc.Datapoint)
			for _, s := range series {
				load := map[string]float64{"i": 90, "n1": 90, "n2": 10}[s.Value] // n1 was the primary, and the instance has its load
				found[s] = []otc.Datapoint{{Time: failover.Add(-5 * time.Minute), Average: load}}
				if time.Since(failover) > 10*time.Minute {
					load = map[string]float64{"i": 90, "n1": 10, "n2": 90}[s.Value]
					found[s] = append(found[s], otc.Datapoint{Time: failover.Add(5 * time.Minute), Average: load})
				}
			}
			return found, nil
		}, time.Now)
		p := &primaries{points: points, now: time.Now, byEngine: make(map[string]comparison)}
		for range 3 {
			another, err := p.showsAnother(t.Context(), autopilot.Instance{ID: "i", Engine: "MySQL", NodeIDs: []string{"n1", "n2"}, Primary: "n2"}, "rds_cluster_id", "rds_instance_id", failover)
			if another || err != nil {
				t.Errorf("%s after the failover: another %t, %v", time.Since(failover), another, err)
			}
			time.Sleep(8 * time.Minute)
		}
		if last := p.byEngine["MySQL"]; last.known.IsZero() || last.another {
			t.Errorf("compared %+v, want the result of the points since the failover", last)
		}
	})
}

// A rule on a node that has no series would never raise an alarm, and the instance's own may.
func TestDimensionIsNoNodeWithoutSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 1000, simcloud.Options{})
		in, err := r.sim.AddInstance(simcloud.Instance{Flavor: "rds.mysql.n1.large.4.ha", VolumeGB: 100})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		r.sim.Step(t.Context())
		r.primaries.byEngine["MySQL"] = comparison{tried: time.Now(), known: time.Now(), another: true}
		for primary, want := range map[string]string{
			in.Nodes[0].ID: "rds_instance_id:" + in.Nodes[0].ID,
			"0123no01":     "rds_cluster_id:" + in.ID,
		} {
			inst := autopilot.Instance{ID: in.ID, Engine: "MySQL", NodeIDs: []string{primary, "another"}, Primary: primary}
			if got, err := r.Dimension(t.Context(), inst, time.Time{}); got != want || err != nil {
				t.Errorf("%s, %v; want %s", got, err, want)
			}
		}
	})
}
