// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/autopilot/plan"
	"github.com/mcsps/rds-autopilot/internal/cloud"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
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

// onlyTarget is a cluster with one Rds, which has the default policy and spec.apply: Cloud.
type onlyTarget struct{ *autopilot.Target }

func (k onlyTarget) LiveAutopilot(context.Context, string, string) (*v1alpha1.RdsAutopilot, error) {
	rap := &v1alpha1.RdsAutopilot{Spec: autopilot.DefaultSpec()}
	rap.Spec.Apply = v1alpha1.ApplyCloud
	return rap, nil
}

func (k onlyTarget) LiveTargetsByInstance(context.Context, string, string) ([]*autopilot.Target, error) {
	return []*autopilot.Target{k.Target}, nil
}

func (k onlyTarget) Writer(context.Context, *autopilot.Target, v1alpha1.ChangeKind) (string, error) {
	return "", nil
}

func TestPlanFollowsUsedSpaceAndReadReplicasInTheCloud(t *testing.T) {
	for name, tc := range map[string]struct {
		cleanedGB float64 // three hours ago
		perMinute float64 // GB in the last hour
		early     plan.Early
		replica   autopilot.ReplicaStep
	}{
		"it fills fast": {0, 0.5,
			plan.Early{Applies: true, Message: "The next sweep decides this without an alarm"}, autopilot.ReplicaGrowsAfter},
		"it fills fast after a clean-up": {5, 0.5, plan.Early{Guard: autopilot.EarlySpaceFreed,
			Message: "No step before the alarm: space was freed in the last 6 hours, or measurements are missing"},
			autopilot.ReplicaGrowsAfter},
		"it fills slowly": {0, 0.1, plan.Early{Guard: autopilot.EarlySlow,
			Message: "No step before the alarm: not read-only within 30 minutes at this rate"}, autopilot.ReplicaGrowsFirst},
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
				reader := simcloud.Instance{Name: "reader", Flavor: "rds.pg.n1.large.4.rr", VolumeGB: 100, ReplicaOf: in.ID}
				if _, err := sim.AddInstance(reader); err != nil {
					t.Fatal(err)
				}
				for minute := range 7 * 60 {
					used := 60 + tc.perMinute*float64(max(0, minute-6*60))
					if minute < 4*60 {
						used += tc.cleanedGB
					}
					if err := sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: used}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute) // on the fake clock
					sim.Step(t.Context())
				}
				api, err := otc.Connect(t.Context(), otc.Options{Env: environment(sim), Transport: sim, Rate: 5})
				if err != nil {
					t.Fatal(err)
				}
				o := Defaults()
				o.Allowed = autopilot.Allowed{Apply: v1alpha1.ApplyCloud, Instances: []string{"*/*"}}
				target := &autopilot.Target{
					Namespace: "shop", Name: "db", InstanceID: in.ID, Wanted: autopilot.Wanted{VolumeGB: 100, Flavor: in.Flavor},
				}
				planner := planner{kube: onlyTarget{target}, api: api, cloud: cloud.New(api, o.Now), options: o}
				p, err := planner.plan(t.Context(), target)
				if err != nil {
					t.Fatal(err)
				}
				if early := p.Metrics[0].Early; early == nil || *early != tc.early {
					t.Errorf("early %+v, want %+v", early, tc.early)
				}
				if len(p.Replicas) != 1 || p.Replicas[0].Name != "reader" || p.Replicas[0].Step != tc.replica {
					t.Errorf("replicas %+v, want reader with %s", p.Replicas, tc.replica)
				}
				o.Allowed.Instances = []string{"shop/" + in.ID}
				planner.options = o
				if p, err = planner.plan(t.Context(), target); err != nil {
					t.Fatal(err)
				}
				if len(p.Replicas) != 1 || p.Replicas[0].Step != autopilot.ReplicaStaysSmaller {
					t.Errorf("a replica that is not allowed: %+v", p.Replicas)
				}
			})
		})
	}
}

// sixHours is a reader of series that counts its calls.
type sixHours struct {
	used  []autopilot.Point
	err   error
	calls int
}

func (r *sixHours) Series(context.Context, autopilot.Instance, controller.SeriesRequest) (autopilot.Series, error) {
	r.calls++
	return autopilot.Series{"rds048_disk_used_size": r.used}, r.err
}

func (r *sixHours) UsedSpace(context.Context, autopilot.Instance, string) ([]autopilot.Point, error) {
	return nil, errors.New("not the used space of 14 days")
}

func TestPlanReadsSixHoursOnlyIfNothingElsePreventsAnEarlyStep(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	var rising []autopilot.Point
	for ago := autopilot.FreedSpan; ago >= 0; ago -= autopilot.FreedPeriod {
		rising = append(rising, autopilot.Point{Time: now.Add(-ago), Value: 86})
	}
	for name, tc := range map[string]struct {
		perHour float64
		reader  sixHours
		calls   int
		steady  bool
		notes   []string
	}{
		"too slow":        {17, sixHours{used: rising}, 0, false, nil},
		"nothing freed":   {20, sixHours{used: rising}, 1, true, nil},
		"no measurements": {20, sixHours{}, 1, false, nil},
		"the read fails": {20, sixHours{used: rising, err: errors.New("ces: 503")}, 1, false,
			[]string{"Not known: whether space was freed in the last hours (ces: 503)"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &situation{plan.Situation{
				Case: autopilot.Case{Now: now, Mode: v1alpha1.ModeAuto, Spec: autopilot.DefaultSpec(),
					Instance: &autopilot.Instance{ID: "i1", VolumeGB: 100}},
				Evidence: map[v1alpha1.Metric]autopilot.Evidence{v1alpha1.MetricStorage: {Time: now, UsedGB: 86,
					Filling: autopilot.Filling{Known: true, Middle: tc.perHour, Fast: tc.perHour}}},
			}}
			s.readSteady(t.Context(), &tc.reader)
			if steady := s.Evidence[v1alpha1.MetricStorage].Steady; steady != tc.steady || tc.reader.calls != tc.calls {
				t.Errorf("%d reads, steady %t, want %d and %t", tc.reader.calls, steady, tc.calls, tc.steady)
			}
			if !slices.Equal(s.Notes, tc.notes) {
				t.Errorf("notes %q, want %q", s.Notes, tc.notes)
			}
		})
	}
}
