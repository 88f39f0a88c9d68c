package alarms_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
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
			w.sim.Configure(func(s *otcsim.Settings) { s.NoInstanceLevelData = true })
			check("data of the nodes only", node, want[2], node)
			w.sim.ResetRequests()
			check("the primary is not known", "", want[1], in.ID)
			if n := len(w.sim.Requests()); n != 1 {
				t.Errorf("%d requests to ask for nothing", n)
			}
			check("the primary is another", "0123no01", want[1], in.ID)
		})
	}
}

// deaf is a cloud that does not say which metrics it has.
type deaf struct{ *otc.Cloud }

func (deaf) MetricListed(context.Context, string, string, string) (bool, error) {
	return false, otc.ErrUnavailable
}

func TestDimensionThatCannotBeFound(t *testing.T) {
	w := newWorld(t)
	if _, _, err := w.alarms.Dimension(t.Context(), "Oracle", w.instance, "n"); err == nil {
		t.Error("an engine that nobody knows has a dimension")
	}
	if name, _, err := alarms.New(deaf{w.cloud}, w.clock).Dimension(t.Context(), "MySQL", w.instance, "n"); !errors.Is(err, otc.ErrUnavailable) || name != "" {
		t.Errorf("the cloud does not answer: %q, %v", name, err)
	}
}
