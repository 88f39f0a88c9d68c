// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// filling is an instance of 100 GB that uses 1 GB in minute 1, 2 GB in minute 2, until minute 5. Its other metrics are 0.
func (w *world) filling() Instance {
	w.t.Helper()
	in := w.newInstance("rds.mysql.c2.medium", 100, Workload{})
	for gb := range 6 {
		w.change(in, func(in *Instance) { in.Workload.UsedGB = float64(gb + 1) }) // the sample of the next minute
		w.clock.advance(time.Minute)
	}
	return in
}

func metricsOf(in Instance, names ...string) (out []Metric) {
	for _, name := range names {
		out = append(out, Metric{"SYS.RDS", name, []Dimension{{"rds_cluster_id", in.ID}}})
	}
	return out
}

// reply is the status and text of a query of averages of the last ten minutes: of one metric alone, of several in a batch.
// The status is 0 without a reply in time.
func (w *world) reply(metrics []Metric, period int, patience time.Duration) (int, string) {
	w.t.Helper()
	to := w.clock.Now().UnixMilli()
	from := to - (10 * time.Minute).Milliseconds()
	url := w.Endpoint("ces") + "/V1.0/" + w.ProjectID()
	body, err := json.Marshal(map[string]any{
		"metrics": metrics, "from": from, "to": to, "period": fmt.Sprint(period), "filter": "average",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	method := http.MethodPost
	if len(metrics) == 1 {
		method = http.MethodGet
		url += fmt.Sprintf("/metric-data?namespace=SYS.RDS&metric_name=%s&dim.0=rds_cluster_id,%s", metrics[0].MetricName,
			metrics[0].Dimensions[0].Value) + fmt.Sprintf("&from=%d&to=%d&period=%d&filter=average", from, to, period)
	} else {
		url += "/batch-query-metric-data"
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", w.token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// minutesOf are the points of each metric of a reply, minute:value, metrics separated by a bar.
func minutesOf(t *testing.T, begin time.Time, text string) string {
	t.Helper()
	type points struct {
		Datapoints []struct {
			Average   json.RawMessage `json:"average"`
			Timestamp int64           `json:"timestamp"`
		} `json:"datapoints"`
	}
	var out struct {
		Metrics []points `json:"metrics"`
		points
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(text, err)
	}
	rows := []string{}
	for _, m := range append(out.Metrics, out.points) {
		row := []string{}
		for _, p := range m.Datapoints {
			row = append(row, fmt.Sprintf("%v:%s", time.UnixMilli(p.Timestamp).Sub(begin).Minutes(), p.Average))
		}
		if len(row) > 0 {
			rows = append(rows, strings.Join(row, " "))
		}
	}
	return strings.Join(rows, " | ")
}

func TestSeriesFaultsChangeThePointsOfOneMetric(t *testing.T) {
	const used = "rds048_disk_used_size"
	w := start(t, Options{})
	begin := w.clock.Now()
	in := w.filling()
	for name, c := range map[string]struct {
		fault  SeriesFault
		period int
		want   string
	}{
		"none":                  {SeriesFault{}, 1, "1:1 2:2 3:3 4:4 5:5"},
		"a text":                {SeriesFault{Value: `"NaN"`}, 1, `1:1 2:2 3:3 4:4 5:"NaN"`},
		"1e300 at a time":       {SeriesFault{Value: "1e300", At: begin.Add(90 * time.Second)}, 1, "1:1e300 2:2 3:3 4:4 5:5"},
		"all are negative":      {SeriesFault{Value: "-5", All: true}, 1, "1:-5 2:-5 3:-5 4:-5 5:-5"},
		"above the volume":      {SeriesFault{AboveVolume: true}, 1, "1:1 2:2 3:3 4:4 5:110.00000000000001"},
		"five minutes":          {SeriesFault{Value: "7"}, 300, "0:7"},
		"a time in five":        {SeriesFault{Value: "7", At: begin.Add(3 * time.Minute)}, 300, "0:7"},
		"not in these five":     {SeriesFault{Value: "7", At: begin.Add(6 * time.Minute)}, 300, "0:2.5"},
		"the future":            {SeriesFault{Future: time.Hour}, 1, "1:1 2:2 3:3 4:4 65:5"},
		"gaps":                  {SeriesFault{Gaps: true}, 1, "2:2 4:4"},
		"doubles":               {SeriesFault{Doubles: true, Gaps: true}, 1, "2:2 2:2 4:4 4:4"},
		"disorder":              {SeriesFault{Disorder: true, Value: "7"}, 1, "5:7 4:4 3:3 2:2 1:1"},
		"a time without points": {SeriesFault{Value: "7", At: begin.Add(-time.Hour)}, 1, "1:1 2:2 3:3 4:4 5:5"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.on(t)
			for _, key := range []string{used, ""} {
				w.change(in, func(in *Instance) { in.SeriesFaults = map[string]SeriesFault{key: c.fault} })
				_, text := w.reply(metricsOf(in, used), c.period, time.Minute)
				if got := minutesOf(t, begin, text); got != c.want {
					t.Errorf("alone: %s, want %s", got, c.want)
				}
				_, text = w.reply(metricsOf(in, used, "rds001_cpu_util"), c.period, time.Minute)
				if got := minutesOf(t, begin, text); !strings.HasPrefix(got, c.want+" | ") {
					t.Errorf("batch: %s, want %s", got, c.want)
				} else if c.period == 1 && key != "" && !strings.HasSuffix(got, " | 1:0 2:0 3:0 4:0 5:0") {
					t.Errorf("the other metric changed: %s", got)
				}
			}
		})
	}
}

func TestBareTokenMakesTheWholeReplyMalformed(t *testing.T) {
	w := start(t, Options{})
	in := w.filling()
	w.change(in, func(in *Instance) {
		in.SeriesFaults = map[string]SeriesFault{"rds001_cpu_util": {Value: "NaN"}}
	})
	for n, names := range [][]string{
		{"rds001_cpu_util"}, {"rds048_disk_used_size", "rds001_cpu_util"}, {"rds048_disk_used_size"},
	} {
		code, text := w.reply(metricsOf(in, names...), 1, time.Minute)
		malformed := !json.Valid([]byte(text))
		if code != 200 || malformed != (n < 2) || malformed != strings.Contains(text, `"average":NaN,`) {
			t.Errorf("%v: %d %s", names, code, text)
		}
	}
}

func TestRefusedSeriesRefusesItsBatch(t *testing.T) {
	w := start(t, Options{})
	in, other := w.filling(), w.newInstance("rds.mysql.c2.medium", 100, Workload{})
	w.change(in, func(in *Instance) { in.SeriesFaults = map[string]SeriesFault{"rds001_cpu_util": {Refused: true}} })
	for name, c := range map[string]struct {
		metrics []Metric
		want    int
	}{
		"alone":              {metricsOf(in, "rds001_cpu_util"), 400},
		"in a batch":         {append(metricsOf(other, "rds001_cpu_util"), metricsOf(in, "rds001_cpu_util")...), 400},
		"another metric":     {metricsOf(in, "rds048_disk_used_size", "rds002_mem_util"), 200},
		"of another, alone":  {metricsOf(other, "rds001_cpu_util"), 200},
		"of another, batch":  {metricsOf(other, "rds001_cpu_util", "rds002_mem_util"), 200},
		"another one, alone": {metricsOf(in, "rds002_mem_util"), 200},
	} {
		if code, text := w.reply(c.metrics, 1, time.Minute); code != c.want {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
}

func TestHourlyQueriesHangUntilTheClientGivesUp(t *testing.T) {
	w := start(t, Options{Settings: Settings{HourlyHangs: true}})
	in := w.filling()
	for _, metrics := range [][]Metric{metricsOf(in, "rds001_cpu_util"), metricsOf(in, "rds001_cpu_util", "rds002_mem_util")} {
		done := make(chan int)
		go func() {
			defer close(done)
			code, _ := w.reply(metrics, 3600, 100*time.Millisecond)
			done <- code
		}()
		if code, text := w.reply(metrics, 300, time.Minute); code != 200 {
			t.Error("five minutes:", code, text)
		}
		if code := <-done; code != 0 {
			t.Error("an hour:", code)
		}
	}
	w.Configure(func(s *Settings) { s.HourlyHangs = false })
	if code, text := w.reply(metricsOf(in, "rds001_cpu_util"), 3600, time.Minute); code != 200 {
		t.Error("an hour, repaired:", code, text)
	}
}
