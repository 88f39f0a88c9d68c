// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otcsim"
)

func TestDimensionThatHasData(t *testing.T) {
	for flavor, want := range map[string][3]string{
		"rds.mysql.c2.medium":  {"MySQL", "rds_cluster_id", "rds_instance_id"},
		"rds.pg.n1.large.4.ha": {"PostgreSQL", "postgresql_cluster_id", "postgresql_instance_id"},
		"rds.mssql.n1.large.4": {"SQLServer", "rds_cluster_sqlserver_id", "rds_instance_sqlserver_id"},
	} {
		t.Run(want[0], func(t *testing.T) {
			w := newWorld(t)
			in, err := w.sim.AddInstance(otcsim.Instance{Flavor: flavor, VolumeGB: 100})
			if err != nil {
				t.Fatal(err)
			}
			node := in.Nodes[0].ID
			check := func(when, primary, name, value string) {
				t.Helper()
				if n, v, err := w.alarms.Dimension(t.Context(), want[0], in.ID, primary); n != name || v != value || err != nil {
					t.Errorf("%s: %s %s, %v; want %s %s", when, n, v, err, name, value)
				}
			}
			check("no data at all", node, want[1], in.ID)
			w.advance(30 * time.Minute)
			w.sim.Step(t.Context())
			check("data of both", node, want[1], in.ID)
			calls := len(w.sim.Requests())
			w.sim.Configure(func(s *otcsim.Settings) { s.NoInstanceLevelData = true })
			w.advance(23 * time.Hour)
			check("it has had data today", node, want[1], in.ID)
			if n := len(w.sim.Requests()); n != calls {
				t.Errorf("%d requests for what is known", n-calls)
			}
			w.advance(time.Hour)
			check("data of the nodes only", node, want[2], node)
			check("the primary is not known", "", want[1], in.ID)
			check("the primary is another", "0123no01", want[1], in.ID)
			check("and back", node, want[2], node)
			w.sim.Configure(func(s *otcsim.Settings) { s.NoInstanceLevelData = false })
			w.advance(29 * time.Minute)
			check("asked for half an hour ago", node, want[2], node)
			w.advance(time.Minute)
			check("the instance has data at last", node, want[1], in.ID)
		})
	}
}

// One list serves all callers of about the same time, and a failure is not repeated for each of them.
func TestDimensionsOfAFleetCostOneList(t *testing.T) {
	w := newWorld(t)
	var ids []string
	for range 50 {
		in, err := w.sim.AddInstance(otcsim.Instance{Flavor: "rds.mysql.c2.medium", VolumeGB: 40})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, in.ID)
	}
	w.advance(10 * time.Minute)
	all := func() (failed int32) {
		var asking sync.WaitGroup
		var bad atomic.Int32
		for _, id := range append(ids, "unknown-1", "unknown-2") {
			asking.Go(func() {
				if name, value, err := w.alarms.Dimension(t.Context(), "MySQL", id, ""); err != nil || name != "rds_cluster_id" || value != id {
					bad.Add(1)
				}
			})
		}
		asking.Wait()
		return bad.Load()
	}
	w.refuse("ListMetrics")
	if bad := all(); bad != 52 || w.sim.Count("ces", "ListMetrics") != 1 {
		t.Errorf("%d of 52 failed in %d calls", bad, w.sim.Count("ces", "ListMetrics"))
	}
	w.refuse()
	w.advance(time.Minute)
	for range 2 {
		if bad := all(); bad != 0 || w.sim.Count("ces", "ListMetrics") != 2 {
			t.Errorf("%d of 52 failed in %d calls", bad, w.sim.Count("ces", "ListMetrics")-1)
		}
		w.advance(20 * time.Minute)
	}
}

func TestDimensionThatCannotBeFound(t *testing.T) {
	w := newWorld(t)
	if _, _, err := w.alarms.Dimension(t.Context(), "Oracle", w.instance, "n"); err == nil {
		t.Error("an engine that nobody knows has a dimension")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if name, _, err := w.alarms.Dimension(ended, "MySQL", w.instance, "n"); !errors.Is(err, context.Canceled) || name != "" {
		t.Errorf("nobody waits for the answer: %q, %v", name, err)
	}
	if _, _, err := w.alarms.Dimension(t.Context(), "MySQL", w.instance, "n"); err != nil {
		t.Errorf("who gave up has spoiled it for others: %v", err)
	}
}
