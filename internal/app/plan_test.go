// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/plan"
	"github.com/mcsps/rds-autopilot/internal/cloud"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

func TestPlanNotesTheAutoscalingOfTheCloud(t *testing.T) {
	for _, tc := range []struct {
		name  string
		on    bool
		fault simcloud.Fault
		want  string
	}{
		{"it is off", false, simcloud.Fault{}, ""},
		{"the API lacks it", true, simcloud.Fault{Status: 404, Body: `{"error_code":"APIGW.0101","error_msg":"The API does not exist"}`}, ""},
		{"it is on", true, simcloud.Fault{}, "The cloud's own storage autoscaling is on: it acts at 15 % free, up to 500 GB; the autopilot at 85 % used, up to 400 GB. The cloud acts first. Set spec.storage.thresholdPercent below 85,"},
		{"it is refused", true, simcloud.Fault{Status: 403, Body: `{"error_code":"DBS.280001","error_msg":"no"}`}, "Cannot read whether the cloud's own storage autoscaling is on: rds GetStoragePolicy: 403"},
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
				s.noteAutoscaling(t.Context(), api)
				if notes := strings.Join(s.Notes, "\n"); !strings.HasPrefix(notes, tc.want) || tc.want == "" && notes != "" {
					t.Errorf("%q, want %q", notes, tc.want)
				}
			})
		})
	}
}

// onlyTarget is a cluster with one Rds, which has the default policy.
type onlyTarget struct{ *autopilot.Target }

func (k onlyTarget) LiveAutopilot(context.Context, string, string) (*v1alpha1.RdsAutopilot, error) {
	return &v1alpha1.RdsAutopilot{Spec: autopilot.DefaultSpec()}, nil
}

func (k onlyTarget) LiveTargetsByInstance(context.Context, string, string) ([]*autopilot.Target, error) {
	return []*autopilot.Target{k.Target}, nil
}

func (k onlyTarget) Writer(context.Context, *autopilot.Target, v1alpha1.ChangeKind) (string, error) {
	return "", nil
}

func TestPlanFollowsUsedSpaceInTheCloud(t *testing.T) {
	for name, tc := range map[string]struct {
		usedGB float64
		reason autopilot.Reason
	}{
		"below the threshold": {80, autopilot.ReasonBelowThreshold},
		"at the threshold":    {90, autopilot.ReasonAlarmInForce},
		"read-only":           {96, autopilot.ReasonAlarmInForce},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim, err := simcloud.Start(simcloud.Options{Local: true})
				if err != nil {
					t.Fatal(err)
				}
				in, err := sim.AddInstance(simcloud.Instance{Name: "db", Flavor: "rds.pg.n1.large.4.ha", VolumeGB: 100})
				if err != nil {
					t.Fatal(err)
				}
				if err := sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: tc.usedGB}); err != nil {
					t.Fatal(err)
				}
				for range 10 {
					time.Sleep(time.Minute) // on the fake clock
					sim.Step(t.Context())
				}
				api, err := otc.Connect(t.Context(), otc.Options{Env: environment(sim), Transport: sim, Rate: 5})
				if err != nil {
					t.Fatal(err)
				}
				o := Defaults()
				target := &autopilot.Target{
					Namespace: "shop", Name: "db", InstanceID: in.ID, Wanted: autopilot.Wanted{VolumeGB: 100, Flavor: in.Flavor},
				}
				planner := planner{kube: onlyTarget{target}, api: api, cloud: cloud.New(api, o.Now), options: o}
				p, err := planner.plan(t.Context(), target)
				if err != nil {
					t.Fatal(err)
				}
				if d := p.Metrics[0].Decision; d.Reason != tc.reason {
					t.Errorf("decision %+v, want %s", d, tc.reason)
				}
			})
		})
	}
}
