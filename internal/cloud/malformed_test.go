// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// malformed is a cloud that answers a request for one series of one instance otherwise than documented.
type malformed struct {
	http.RoundTripper
	id, metric string // of the series
	value      string // instead of its values; empty means that the cloud rejects the request
}

func (m *malformed) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.id == "" || !strings.HasSuffix(r.URL.Path, "/batch-query-metric-data") {
		return m.RoundTripper.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := m.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	var reply struct {
		Metrics []struct {
			Name       string              `json:"metric_name"`
			Dimensions []map[string]string `json:"dimensions"`
			Datapoints []map[string]any    `json:"datapoints"`
		} `json:"metrics"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		return nil, err
	}
	for _, series := range reply.Metrics {
		if series.Name != m.metric || series.Dimensions[0]["value"] != m.id {
			continue
		}
		if m.value == "" {
			resp.StatusCode = http.StatusBadRequest
		}
		for _, p := range series.Datapoints {
			p["average"] = "malformed"
		}
	}
	text, err := json.Marshal(reply)
	if err != nil {
		return nil, err
	}
	text = bytes.ReplaceAll(text, []byte(`"malformed"`), []byte(m.value))
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return resp, nil
}

func TestMalformedSeriesAffectsOnlyItself(t *testing.T) {
	for name, value := range map[string]string{
		"a text": `"a lot"`, "NaN": "NaN", "a number that is too large": "1e999", "an object": "{}", "rejected": "",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim, err := simcloud.Start(simcloud.Options{Local: true})
				if err != nil {
					t.Fatal(err)
				}
				odd := &malformed{RoundTripper: sim, value: value}
				r := reads{New(connectBy(t, sim, odd, 20), time.Now), sim}
				ids := r.add(t, 5)
				time.Sleep(10 * time.Minute)
				odd.id, odd.metric = ids[2], "rds048_disk_used_size"
				var all sync.WaitGroup
				for i, id := range ids {
					all.Go(func() {
						inst := autopilot.Instance{ID: id, Engine: "MySQL", VolumeGB: 100}
						e, err := r.Evidence(t.Context(), inst, controller.EvidenceRequest{Metric: v1alpha1.MetricStorage})
						if isOdd := i == 2; (err != nil) != isOdd || (e.UsedGB == 50) == isOdd {
							t.Errorf("database %d: %+v, %v", i, e, err)
						}
					})
				}
				all.Wait()
				inst := autopilot.Instance{ID: ids[2], Engine: "MySQL"}
				series, err := r.Series(t.Context(), inst, controller.SeriesRequest{
					Metrics: []string{"rds048_disk_used_size", "rds001_cpu_util"}, Period: 5 * time.Minute, Since: time.Now().Add(-time.Hour),
				})
				if err != nil || len(series["rds001_cpu_util"]) == 0 || len(series["rds048_disk_used_size"]) > 0 {
					t.Errorf("series of the database itself: %v, %v", series, err)
				}
				past, err := r.Past(t.Context(), inst, []controller.EvidenceRequest{{Metric: v1alpha1.MetricStorage}}, 5*time.Minute, time.Now().Add(-time.Hour))
				if err != nil || len(past.Percent[v1alpha1.MetricStorage]) == 0 || len(past.UsedGB) > 0 {
					t.Errorf("its past: %+v, %v", past, err)
				}
			})
		})
	}
}
