// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/plan"
	"github.com/mcsps/rds-autopilot/internal/otc"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// environment has the credentials of a simulated cloud.
func environment(sim *simcloud.Cloud) func(string) string {
	env := map[string]string{}
	for _, pair := range sim.Env() {
		k, v, _ := strings.Cut(pair, "=")
		env[k] = v
	}
	return func(k string) string { return env[k] }
}

func TestPlanSaysWhetherTheCloudGrowsTheVolumeToo(t *testing.T) {
	for _, tc := range []struct {
		name  string
		on    bool
		fault simcloud.Fault
		want  string
	}{
		{"it is off", false, simcloud.Fault{}, ""},
		{"the API lacks it", true, simcloud.Fault{Status: 404, Body: `{"error_code":"APIGW.0101","error_msg":"The API does not exist"}`}, ""},
		{"it is on", true, simcloud.Fault{}, "The cloud's own storage autoscaling is on: it acts at 15 % free, up to 500 GB; the autopilot at 90 % used, up to 400 GB."},
		{"it is refused", true, simcloud.Fault{Status: 403, Body: `{"error_code":"DBS.280001","error_msg":"no"}`}, "Cannot read whether the cloud's own storage autoscaling is on: rds GetStoragePolicy: 403"},
		{"it hangs", true, simcloud.Fault{Hang: true}, "Cannot read whether the cloud's own storage autoscaling is on: rds GetStoragePolicy: context deadline exceeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim, err := simcloud.Start(simcloud.Options{Local: true, Fault: func(q *http.Request) *simcloud.Fault {
					if strings.HasSuffix(q.URL.Path, "/disk-auto-expansion") {
						return &tc.fault
					}
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				in, err := sim.AddInstance(simcloud.Instance{
					Name: "db", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, AutoScale: simcloud.AutoScale{On: tc.on, LimitGB: 500, TriggerThreshold: 15},
				})
				if err != nil {
					t.Fatal(err)
				}
				api, err := otc.Connect(t.Context(), otc.Options{Env: environment(sim), Transport: sim, Rate: 5})
				if err != nil {
					t.Fatal(err)
				}
				s := &situation{plan.Situation{Case: autopilot.Case{
					Spec: autopilot.DefaultSpec(), Instance: &autopilot.Instance{ID: in.ID, VolumeGB: 100},
				}}}
				begin := time.Now()
				s.noteAutoscaling(t.Context(), api)
				if told := strings.Join(s.Notes, "\n"); !strings.HasPrefix(told, tc.want) || tc.want == "" && told != "" {
					t.Errorf("%q, want %q", told, tc.want)
				}
				if took := time.Since(begin); took > autoscalingLimit {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}
