// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/insight"
	"github.com/mcsps/rds-autopilot/internal/otc"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// causesOf returns the lines of the check in a project with these instances, and the project's cloud.
func causesOf(t *testing.T, instances ...simcloud.Instance) (lines []string, sim *simcloud.Cloud) {
	t.Helper()
	sim, err := simcloud.Start(simcloud.Options{Local: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range instances {
		in.VolumeGB = 100
		if _, err := sim.AddInstance(in); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Hour)
	env := map[string]string{}
	for _, pair := range sim.Env() {
		key, value, _ := strings.Cut(pair, "=")
		env[key] = value
	}
	x := newExamination(Options{})
	x.api, err = otc.Connect(t.Context(), otc.Options{Env: func(key string) string { return env[key] }, Transport: sim, Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	sim.ResetRequests()
	for _, r := range x.checkCauses(t.Context()) {
		lines = append(lines, string(r.State)+" "+r.Text)
	}
	return lines, sim
}

// measured returns a workload with a value of each metric from which a cause is found, except those.
func measured(engine string, without ...string) simcloud.Workload {
	w := simcloud.Workload{UsedGB: 50, Metrics: map[string]float64{}}
	for _, metric := range insight.CauseMetrics(engine)[1:] { // every instance has the used space
		if !slices.Contains(without, metric) {
			w.Metrics[metric] = 1
		}
	}
	return w
}

func TestCausesNamesTheMetricsThatCloudEyeLacks(t *testing.T) {
	const (
		noPostgres, noSQLServer = "unseen PostgreSQL: the project has no instance of this engine", "unseen SQLServer: the project has no instance of this engine"
		mysql                   = "ok MySQL: Cloud Eye has no metrics of sizes, so the cause is always Unknown"
		postgresFlavor          = "rds.pg.n1.large.4"
	)
	id := "11111111111111111111111111111111in03"
	for name, tc := range map[string]struct {
		instances []simcloud.Instance
		want      []string
	}{
		"MySQL": {[]simcloud.Instance{{Flavor: "rds.mysql.n1.large.4"}}, []string{noPostgres, noSQLServer, mysql}},
		"all metrics": {[]simcloud.Instance{{Flavor: postgresFlavor, Workload: measured("PostgreSQL")}},
			[]string{"ok PostgreSQL: seen: all 8 metrics, of 1 instance", noSQLServer, mysql}},
		"two metrics are missing": {[]simcloud.Instance{{ID: id, Flavor: postgresFlavor, Workload: measured("PostgreSQL", "pgaudit_log_size", "rds045_oldest_replication_slot_lag")}},
			[]string{
				"warning PostgreSQL: not seen: rds045_oldest_replication_slot_lag: the cause ReplicationSlot cannot be recognised by its WAL, and is reported as WAL (1 of 1 instance, such as " + id + ")",
				"warning PostgreSQL: not seen: pgaudit_log_size: the cause AuditLog cannot be recognised (1 of 1 instance, such as " + id + ")",
				noSQLServer, mysql,
			}},
		"a read replica without metrics": {[]simcloud.Instance{
			{ID: id, Flavor: postgresFlavor, Workload: measured("PostgreSQL")},
			{Flavor: postgresFlavor + ".rr", ReplicaOf: id},
		}, []string{"ok PostgreSQL: seen: all 8 metrics, of 1 instance", noSQLServer, mysql}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, sim := causesOf(t, tc.instances...)
				if !slices.Equal(got, tc.want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
				}
				if n := sim.Count("ces", "") - sim.Count("ces", "ListMetrics"); n != 0 {
					t.Errorf("%d calls beside ListMetrics: %v", n, sim.Requests())
				}
			})
		})
	}
}

func TestEachMetricNamesTheCauseThatIsLostWithoutIt(t *testing.T) {
	for _, engine := range []string{"PostgreSQL", "SQLServer"} {
		for i, metric := range insight.CauseMetrics(engine) {
			if lost := insight.CauseLostWithout(metric); strings.HasPrefix(lost, "no cause") != (i == 0) {
				t.Errorf("%s: %q", metric, lost)
			}
		}
	}
}
