// SPDX-License-Identifier: Apache-2.0

package otcsim

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// data asks for a metric and returns minute:value, minutes counted from begin.
func (w *world) data(m Metric, period int, filter string, begin, from, to time.Time) string {
	w.t.Helper()
	q := url.Values{
		"namespace": {m.Namespace}, "metric_name": {m.MetricName}, "dim.0": {m.Dimensions[0].Name + "," + m.Dimensions[0].Value},
		"period": {fmt.Sprint(period)}, "filter": {filter}, "from": {fmt.Sprint(from.UnixMilli())}, "to": {fmt.Sprint(to.UnixMilli())},
	}
	out := ""
	for _, p := range w.call(200, "ces", "GET", "/metric-data?"+q.Encode(), nil)["datapoints"].([]any) {
		row := p.(map[string]any)
		at := time.UnixMilli(int64(row["timestamp"].(float64))).Sub(begin)
		out += fmt.Sprintf("%v:%v ", float64(at)/float64(w.span(time.Minute)), row[filter])
	}
	return strings.TrimSpace(out)
}

func TestMetricDataOfRawAndOfLongerPeriods(t *testing.T) {
	for _, speed := range []float64{1, 60, 600} {
		t.Run(fmt.Sprint("speed ", speed), func(t *testing.T) {
			w := start(t, Options{Speed: speed})
			begin := w.clock.Now()
			in := w.newInstance("rds.mysql.c2.medium", 40, Workload{UsedGB: 1})
			for i := range 12 { // the sample of minute i holds i GB
				if err := w.SetWorkload(in.ID, Workload{UsedGB: float64(i + 1)}); err != nil {
					t.Fatal(err)
				}
				w.clock.advance(w.span(time.Minute))
			}
			m := Metric{"SYS.RDS", "rds048_disk_used_size", []Dimension{{"rds_cluster_id", in.ID}}}
			at := func(minutes int) time.Time { return begin.Add(w.span(time.Duration(minutes) * time.Minute)) }
			for name, c := range map[string]struct {
				period   int
				filter   string
				from, to int
				want     string
			}{
				"raw":                           {1, "average", 3, 5, "3:3 4:4 5:5"},
				"the minute that goes on":       {1, "average", 10, 20, "10:10 11:11"},
				"average":                       {300, "average", 0, 12, "0:2.5 5:7"},
				"max":                           {300, "max", 0, 12, "0:4 5:9"},
				"min":                           {300, "min", 0, 12, "0:1 5:5"},
				"sum":                           {300, "sum", 0, 12, "0:10 5:35"},
				"within a period":               {300, "average", 6, 9, ""},
				"a period that has not ended":   {300, "average", 10, 12, ""},
				"before there was any instance": {1, "average", -10, 1, "1:1"},
			} {
				if got := w.data(m, c.period, c.filter, begin, at(c.from), at(c.to)); got != c.want {
					t.Errorf("%s: %q, want %q", name, got, c.want)
				}
			}
			w.Configure(func(s *Settings) { s.MetricDelay = 5 * time.Minute })
			if got := w.data(m, 1, "average", begin, at(5), at(12)); got != "5:5 6:6" {
				t.Errorf("five minutes late: %q", got)
			}
		})
	}
}

func TestUtilisationFollowsWorkloadAndSize(t *testing.T) {
	w := start(t, Options{})
	in := w.newInstance("rds.mysql.c2.medium.ha", 100, Workload{UsedGB: 80, CPUDemand: 1.5, MemoryDemandGB: 5})
	w.minutes(2)
	newest := func(metric string, d Dimension) string {
		t.Helper()
		now := w.clock.Now()
		got := strings.Fields(w.data(Metric{"SYS.RDS", metric, []Dimension{d}}, 1, "average", now, now.Add(-3*time.Minute), now))
		if len(got) == 0 {
			return ""
		}
		return strings.SplitN(got[len(got)-1], ":", 2)[1]
	}
	top := Dimension{"rds_cluster_id", in.ID}
	primary, standby := Dimension{"rds_instance_id", in.Nodes[0].ID}, Dimension{"rds_instance_id", in.Nodes[1].ID}
	check := func(want map[string]string) {
		t.Helper()
		for k, v := range want {
			metric, of, _ := strings.Cut(k, " of ")
			if got := newest(metric, map[string]Dimension{"all": top, "primary": primary, "standby": standby}[of]); got != v {
				t.Errorf("%s: %q, want %q", k, got, v)
			}
		}
	}
	check(map[string]string{
		"rds039_disk_util of all": "80", "rds047_disk_total_size of all": "100", "rds048_disk_used_size of standby": "80",
		"rds001_cpu_util of all": "75", "rds001_cpu_util of primary": "75", "rds001_cpu_util of standby": "18.75", "rds002_mem_util of all": "100",
	})
	if err := w.ChangeInstance(in.ID, func(in *Instance) { in.Flavor, in.VolumeGB = "rds.mysql.c2.large.ha", 160 }); err != nil {
		t.Fatal(err)
	}
	w.minutes(2)
	check(map[string]string{"rds039_disk_util of all": "50", "rds001_cpu_util of all": "37.5", "rds002_mem_util of all": "62.5"})
	w.Configure(func(s *Settings) { s.NoInstanceLevelData = true })
	check(map[string]string{"rds039_disk_util of all": "", "rds039_disk_util of primary": "50"})
}

func TestMetricsListWhatHasData(t *testing.T) {
	w := start(t, Options{})
	my := w.newInstance("rds.mysql.c2.medium.ha", 40, Workload{})
	list := func(query string) (out []string) {
		t.Helper()
		for _, r := range w.call(200, "ces", "GET", "/metrics?"+query, nil)["metrics"].([]any) {
			row := r.(map[string]any)
			d := row["dimensions"].([]any)[0].(map[string]any)
			out = append(out, fmt.Sprintf("%s %s,%s", row["metric_name"], d["name"], d["value"]))
		}
		return out
	}
	if got := list(""); len(got) != 0 {
		t.Error("before the first minute:", got)
	}
	w.minutes(2)
	if got := list(""); len(got) != 15 {
		t.Error(got)
	}
	byDim := "namespace=SYS.RDS&metric_name=rds039_disk_util&dim.0=rds_cluster_id," + my.ID
	if got := list(byDim); !slices.Equal(got, []string{"rds039_disk_util rds_cluster_id," + my.ID}) {
		t.Error(got)
	}
	var paged []string
	start := ""
	for {
		out := w.call(200, "ces", "GET", "/metrics?limit=4&start="+url.QueryEscape(start), nil)
		for _, r := range out["metrics"].([]any) {
			paged = append(paged, r.(map[string]any)["metric_name"].(string))
		}
		if start = out["meta_data"].(map[string]any)["marker"].(string); start == "" {
			break
		}
	}
	if len(paged) != 15 {
		t.Error(paged)
	}
	w.Configure(func(s *Settings) { s.NoInstanceLevelData = true })
	if got := list(byDim); len(got) != 0 {
		t.Error("instance-level dimension:", got)
	}
}

func TestBatchQueryAndItsLimits(t *testing.T) {
	w := start(t, Options{})
	in := w.newInstance("rds.mssql.n1.large.2", 40, Workload{UsedGB: 7})
	w.minutes(2)
	now := w.clock.Now()
	batch := func(want, metrics int, back time.Duration, period string) map[string]any {
		t.Helper()
		var list []Metric
		for range metrics {
			list = append(list, Metric{"SYS.RDS", "rds048_disk_used_size", []Dimension{{"rds_cluster_sqlserver_id", in.ID}}})
		}
		return w.call(want, "ces", "POST", "/batch-query-metric-data", map[string]any{
			"metrics": list, "from": now.Add(-back).UnixMilli(), "to": now.UnixMilli(), "period": period, "filter": "average",
		})
	}
	rows := batch(200, 10, time.Hour, "1")["metrics"].([]any)
	points := rows[9].(map[string]any)["datapoints"].([]any)
	if len(rows) != 10 || len(points) != 1 || points[0].(map[string]any)["average"] != 7.0 {
		t.Error(rows)
	}
	batch(400, 11, time.Hour, "1")
	batch(400, 10, 5*time.Hour+time.Minute, "1")
	batch(200, 10, 5*time.Hour, "1")
	batch(200, 10, 24*time.Hour, "300")
	batch(400, 1, time.Hour, "60")
	batch(400, 1, 0, "1")
	batch(400, 0, time.Hour, "1")
}
