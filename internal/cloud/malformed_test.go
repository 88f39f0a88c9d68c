// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const usedSpace = "rds048_disk_used_size"

// malformedReply returns the reply to a request for the used space of an instance, with value in place of a number. It
// returns nil if the request does not contain that series. Without a value, it rejects the request.
func malformedReply(t *testing.T, r *http.Request, id, value string) *simcloud.Fault {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if _, op := simcloud.OperationOf(r); op != "BatchMetricData" || id == "" ||
		!bytes.Contains(body, []byte(id)) || !bytes.Contains(body, []byte(usedSpace)) {
		return nil
	}
	if value == "" {
		return &simcloud.Fault{Status: http.StatusBadRequest, Body: `{"code":"ces.0001","message":"bad series"}`}
	}
	return &simcloud.Fault{Status: http.StatusOK, Body: fmt.Sprintf(`{"metrics":[{"metric_name":%q,`+
		`"dimensions":[{"name":"rds_cluster_id","value":%q}],"datapoints":[{"average":%s,"timestamp":1}]}]}`, usedSpace, id, value)}
}

func TestMalformedSeriesAffectsOnlyItself(t *testing.T) {
	for name, value := range map[string]string{
		"a text": `"a lot"`, "NaN": "NaN", "a number that is too large": "1e999", "an object": "{}", "rejected": "",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				malformed := "" // id of an instance
				r := newReads(t, 20, simcloud.Options{Fault: func(q *http.Request) *simcloud.Fault {
					return malformedReply(t, q, malformed, value)
				}})
				ids := r.add(t, 5)
				time.Sleep(10 * time.Minute)
				malformed = ids[2]
				var all sync.WaitGroup
				for _, id := range ids {
					all.Go(func() {
						inst := autopilot.Instance{ID: id, Engine: "MySQL", VolumeGB: 100}
						e, err := r.Evidence(t.Context(), inst, controller.EvidenceRequest{Metric: v1alpha1.MetricStorage})
						if (err != nil) != (id == malformed) || (e.UsedGB == 50) == (id == malformed) {
							t.Errorf("database %s: %+v, %v", id, e, err)
						}
					})
				}
				all.Wait()
				inst := autopilot.Instance{ID: malformed, Engine: "MySQL"}
				series, err := r.Series(t.Context(), inst, controller.SeriesRequest{
					Metrics: []string{usedSpace, "rds001_cpu_util"}, Period: 5 * time.Minute, Since: time.Now().Add(-time.Hour),
				})
				if err != nil || len(series["rds001_cpu_util"]) == 0 || len(series[usedSpace]) > 0 {
					t.Errorf("another series of the same database: %v, %v", series, err)
				}
			})
		})
	}
}
