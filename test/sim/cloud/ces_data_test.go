// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"fmt"
	"net/url"
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
