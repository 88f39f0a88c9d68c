// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// noon is a Wednesday.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(noon.Add(-d))) }

// calm is a database whose autopilot could act on everything, with little used.
func calm() *autopilot.Situation {
	sold := func(code string, vcpus, memoryGB int, state string) flavors.Flavor {
		return flavors.Flavor{Code: code, Engine: "MySQL", Versions: []string{"8.0"}, Mode: "ha", VCPUs: vcpus, MemoryGB: memoryGB,
			Zones: map[string]string{"eu-de-01": "normal", "eu-de-02": state}}
	}
	measured := func(percent, usedGB float64) autopilot.Evidence {
		return autopilot.Evidence{Time: noon.Add(-2 * time.Minute), Percent: percent, UsedGB: usedGB}
	}
	inst := &autopilot.Instance{
		ID: "i1", Status: autopilot.StatusActive, Engine: "MySQL", Version: "8.0", Mode: "ha", Flavor: "rds.mysql.n1.large.4.ha",
		VCPUs: 2, MemoryGB: 8, VolumeGB: 100, Zones: []string{"eu-de-01", "eu-de-02"},
	}
	return &autopilot.Situation{
		Namespace: "shop", Name: "orders",
		Evidence: map[v1alpha1.Metric]autopilot.Evidence{
			v1alpha1.MetricStorage: measured(0, 42), v1alpha1.MetricCPU: measured(12.5, 0), v1alpha1.MetricMemory: measured(50, 0),
		},
		Case: autopilot.Case{
			Now: noon, Mode: v1alpha1.ModeAuto, Enabled: true, Spec: autopilot.DefaultSpec(), Generation: 3, Recheck: 30 * time.Second,
			Wanted: autopilot.Wanted{VolumeGB: 100, Flavor: inst.Flavor}, Instance: inst,
			Catalogue: []flavors.Flavor{
				sold("rds.mysql.n1.large.4.ha", 2, 8, "normal"), sold("rds.mysql.n1.xlarge.4.ha", 4, 16, "sellout"),
				sold("rds.mysql.n1.2xlarge.4.ha", 8, 32, "normal"), sold("rds.mysql.n1.4xlarge.4.ha", 16, 64, "normal"),
			},
			Status: v1alpha1.Status{
				Instance: &v1alpha1.Instance{ID: "i1", Status: "ACTIVE", ActiveSince: new(metav1.NewTime(noon.Add(-24 * time.Hour)))},
				Baseline: &v1alpha1.Baseline{VolumeGB: 100, VCPUs: 2, MemoryGB: 8},
			},
		},
	}
}

// changedLately brings the cooldown, the budget and the window in the way of a flavor.
func changedLately(s *autopilot.Situation) {
	for _, back := range []time.Duration{23 * time.Minute, 7 * time.Hour} {
		s.Status.Changes = append(s.Status.Changes, v1alpha1.Change{
			Kind: v1alpha1.KindFlavor, By: v1alpha1.ByAutopilot, From: "rds.mysql.n1.medium.4.ha", To: "rds.mysql.n1.large.4.ha",
			Metrics: []v1alpha1.Metric{v1alpha1.MetricCPU}, ValuePercent: "96.0", DecisionTime: ago(back + 10*time.Minute),
			CompletionTime: *ago(back), Outcome: v1alpha1.OutcomeCompleted, Generation: 3,
		})
	}
	s.Spec.Flavor.Window = &v1alpha1.Window{Days: []v1alpha1.Day{"Sat"}, Start: "01:00", End: "05:00", TimeZone: "UTC"}
}

func TestPlanNamesWhatHoldsAChangeBack(t *testing.T) {
	for _, tc := range []struct {
		name        string
		alter       func(*autopilot.Situation)
		metric      v1alpha1.Metric
		now         autopilot.Reason
		atThreshold string // reason and target
		guards      []string
		afterwards  string
		candidates  int
	}{
		{"calm storage would grow", func(*autopilot.Situation) {}, v1alpha1.MetricStorage, autopilot.ReasonBelowThreshold, "AlarmInForce 110", nil, "", 0},
		{"a full disk grows", func(s *autopilot.Situation) {
			s.Evidence[v1alpha1.MetricStorage] = autopilot.Evidence{Time: noon, UsedGB: 92}
		}, v1alpha1.MetricStorage, autopilot.ReasonAlarmInForce, "", nil, "", 0},
		{"an awkward size is at its threshold", func(s *autopilot.Situation) { s.Instance.VolumeGB, s.Wanted.VolumeGB = 80, 80 }, v1alpha1.MetricStorage, autopilot.ReasonBelowThreshold, "AlarmInForce 90", nil, "", 0},
		{"no data is not the end", func(s *autopilot.Situation) { s.Evidence = nil }, v1alpha1.MetricStorage, autopilot.ReasonNoData, "AlarmInForce 110", nil, "", 0},
		{"the cap has no end", func(s *autopilot.Situation) { s.Spec.Storage.MaxGB = 100 }, v1alpha1.MetricStorage, autopilot.ReasonBelowThreshold, "CapReached ", []string{"CapReached -"}, "", 0},
		{"calm CPU would change", func(*autopilot.Situation) {}, v1alpha1.MetricCPU, autopilot.ReasonBelowThreshold, "AlarmInForce rds.mysql.n1.2xlarge.4.ha", nil, "", 3},
		{"what was done lately is named in order, with its end", changedLately, v1alpha1.MetricCPU, autopilot.ReasonBelowThreshold, "Cooldown ",
			[]string{"Cooldown 2026-03-04T12:37:00Z", "BudgetSpent 2026-03-05T04:50:00Z", "OutsideWindow 2026-03-07T01:00:00Z"}, "AlarmInForce rds.mysql.n1.2xlarge.4.ha", 3},
		{"two vain changes and a closed window", func(s *autopilot.Situation) {
			changedLately(s)
			s.Evidence[v1alpha1.MetricCPU] = autopilot.Evidence{Time: noon, Percent: 97}
		}, v1alpha1.MetricCPU, autopilot.ReasonCooldown, "",
			[]string{"Cooldown 2026-03-04T12:37:00Z", "BudgetSpent 2026-03-05T04:50:00Z", "NoEffect 2026-03-11T05:00:00Z", "OutsideWindow 2026-03-07T01:00:00Z"}, "AlarmInForce rds.mysql.n1.2xlarge.4.ha", 3},
		{"somebody put a smaller one in place of ours", func(s *autopilot.Situation) {
			changedLately(s)
			s.Status.Changes = s.Status.Changes[:1]
			s.Status.Changes[0].From, s.Status.Changes[0].To = "rds.mysql.n1.large.4.ha", "rds.mysql.n1.2xlarge.4.ha"
			s.Spec.Flavor.Window, s.Spec.Flavor.CooldownSeconds = nil, new(int32(0))
		}, v1alpha1.MetricCPU, autopilot.ReasonBelowThreshold, "Contested ", []string{"Contested 2026-03-11T12:00:00Z"}, "AlarmInForce rds.mysql.n1.2xlarge.4.ha", 3},
		{"behind a pending change nothing is known", func(s *autopilot.Situation) { s.Wanted.Flavor = "rds.mysql.n1.2xlarge.4.ha"; changedLately(s) }, v1alpha1.MetricMemory,
			autopilot.ReasonBelowThreshold, "ChangePending ", []string{"ChangePending -"}, "", 3},
		{"busy, until it is not", func(s *autopilot.Situation) { s.Instance.Status = "MODIFYING" }, v1alpha1.MetricCPU, autopilot.ReasonBelowThreshold, "InstanceBusy ", []string{"InstanceBusy -"}, "", 3},
		{"active since a moment", func(s *autopilot.Situation) {
			s.Status.Instance.ActiveSince = new(metav1.NewTime(noon.Add(-time.Minute)))
		}, v1alpha1.MetricCPU,
			autopilot.ReasonBelowThreshold, "InstanceBusy ", []string{"InstanceBusy 2026-03-04T12:14:00Z"}, "AlarmInForce rds.mysql.n1.2xlarge.4.ha", 3},
		{"off, and what it would do if it were on", func(s *autopilot.Situation) { s.Enabled = false }, v1alpha1.MetricStorage, autopilot.ReasonNotEnabled, "", []string{"NotEnabled -"}, "AlarmInForce 110", 0},
		{"mode Off", func(s *autopilot.Situation) { s.Mode = v1alpha1.ModeOff }, v1alpha1.MetricMemory, autopilot.ReasonNotEnabled, "", []string{"NotEnabled -"}, "AlarmInForce rds.mysql.n1.2xlarge.4.ha", 3},
		{"a metric that is off", func(s *autopilot.Situation) { s.Spec.Flavor.CPU.Enabled = new(false) }, v1alpha1.MetricCPU, autopilot.ReasonNotEnabled, "", []string{"NotEnabled -"}, "AlarmInForce rds.mysql.n1.2xlarge.4.ha", 3},
		{"mode Recommend names the change", func(s *autopilot.Situation) { s.Mode = v1alpha1.ModeRecommend }, v1alpha1.MetricStorage, autopilot.ReasonBelowThreshold, "Recommend 110", nil, "", 0},
		{"no instance", func(s *autopilot.Situation) { s.Instance, s.Evidence = nil, nil }, v1alpha1.MetricCPU, autopilot.ReasonInstanceUnknown, "", []string{"InstanceUnknown -"}, "", 0},
		{"a broken policy", func(s *autopilot.Situation) { s.Spec.Storage.StepGB = 15 }, v1alpha1.MetricStorage, autopilot.ReasonPolicyInvalid, "", []string{"PolicyInvalid -"}, "", 0},
		{"everything is sold out", func(s *autopilot.Situation) {
			for _, f := range s.Catalogue {
				f.Zones["eu-de-01"] = "sellout"
			}
		}, v1alpha1.MetricCPU, autopilot.ReasonBelowThreshold, "SoldOut ", []string{"SoldOut -"}, "", 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := calm()
			tc.alter(s)
			before, err := json.Marshal(s.Case)
			if err != nil {
				t.Fatal(err)
			}
			all := s.Plan().Metrics
			m := all[slices.IndexFunc(all, func(m autopilot.MetricPlan) bool { return m.Metric == tc.metric })]
			short := func(a *autopilot.Answer) string {
				if a == nil {
					return ""
				}
				return string(a.Reason) + " " + a.To
			}
			var guards []string
			for _, g := range m.Guards {
				ends := "-"
				if g.Ends != nil {
					ends = g.Ends.UTC().Format(time.RFC3339)
				}
				guards = append(guards, string(g.Reason)+" "+ends)
			}
			got := []any{m.Decision.Reason, short(m.AtThreshold), guards, short(m.Afterwards), len(m.Candidates)}
			if diff := cmp.Diff([]any{tc.now, tc.atThreshold, tc.guards, tc.afterwards, tc.candidates}, got); diff != "" {
				t.Errorf("now, at the threshold, guards, afterwards, candidates:\n%s", diff)
			}
			if after, err := json.Marshal(s.Case); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the case was altered (%v):\n%s", err, cmp.Diff(string(before), string(after)))
			}
		})
	}
}

func TestPlanAsATable(t *testing.T) {
	s := calm()
	changedLately(s)
	s.Evidence[v1alpha1.MetricStorage] = autopilot.Evidence{Time: noon, UsedGB: 92.04}
	delete(s.Evidence, v1alpha1.MetricMemory)
	s.Notes = []string{"Not armed yet: no alarm would reach the autopilot"}
	got, err := s.Plan().Text()
	if err != nil {
		t.Fatal(err)
	}
	const want = `shop/orders, mode Auto: MySQL 8.0 ha, 100 GB, rds.mysql.n1.large.4.ha (2 vCPUs, 8 GB), ACTIVE, in eu-de-01, eu-de-02
  Not armed yet: no alarm would reach the autopilot
  Not considered: flavors that are changing elsewhere in the cluster (--max-flavor-changes)

IF THE ALARM CAME   VALUE NOW          ALARM AT   ANSWER NOW             REASON           LOOKS AGAIN
storage             92.0 % (92.0 GB)   90 %       GrowVolume 100 → 110   AlarmInForce     at an event
cpu                 12.5 %             90 %       nothing                BelowThreshold   in 1m
memory              no data            90 %       nothing                NoData           in 1m

storage: Storage 100 → 110 GB: 92.0 % used, alarm at 90 %

cpu: The flavor stays rds.mysql.n1.large.4.ha: 12.5 % CPU used, alarm at 90 %; looking again in 1 minute
  At 90 %: nothing (Cooldown). The flavor changed 23 minutes ago, and the cooldown is 1 hour; looking again in 37 minutes
  Held back by
    Cooldown        until 2026-03-04T12:37:00Z (in 37m)      The flavor changed 23 minutes ago, and the cooldown is 1 hour; looking again in 37 minutes
    BudgetSpent     until 2026-03-05T04:50:00Z (in 16h50m)   The flavor changed 2 times in 24 hours, as often as spec.flavor.maxChangesPerDay allows; looking again in 16 hours 50 minutes
    OutsideWindow   until 2026-03-07T01:00:00Z (in 2d13h)    The window is closed: the wish is kept until it opens at 2026-03-07T01:00:00Z; looking again in 2 days 13 hours
  After that: Flavor rds.mysql.n1.large.4.ha (2 vCPUs, 8 GB) → rds.mysql.n1.2xlarge.4.ha (8 vCPUs, 32 GB): 90.0 % CPU used, alarm at 90 % (AlarmInForce)
  CANDIDATE                   VCPUS   GB   REFUSED
  rds.mysql.n1.xlarge.4.ha    4       16   not available in every zone: sellout in eu-de-02
  rds.mysql.n1.2xlarge.4.ha   8       32   no
  rds.mysql.n1.4xlarge.4.ha   16      64   above the caps
`
	if diff := cmp.Diff(want, string(got[:strings.Index(string(got), "\nmemory:")])); diff != "" {
		t.Error(diff)
	}
}

// The cloud's own autoscaling is told, but never waited for long, and plan answers without it.
func TestPlanForProgramsHasStableKeys(t *testing.T) {
	s := calm()
	changedLately(s)
	texts := map[string][]byte{}
	for _, format := range []string{"json", "yaml"} {
		var out bytes.Buffer
		if err := writePlan(&out, s.Plan(), format); err != nil {
			t.Fatal(err)
		}
		texts[format] = out.Bytes()
	}
	var fromJSON, fromYAML map[string]any
	if err := json.Unmarshal(texts["json"], &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(texts["yaml"], &fromYAML); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fromJSON, fromYAML); diff != "" {
		t.Errorf("YAML differs from JSON:\n%s", diff)
	}
	var keys []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(path+"."+k, x)
			}
		case []any:
			for _, x := range v {
				walk(path, x)
			}
		default:
			keys = append(keys, strings.TrimPrefix(path, "."))
		}
	}
	walk("", fromJSON)
	slices.Sort(keys)
	want := strings.Fields(`instance.engine instance.flavor instance.id instance.memoryGB instance.mode instance.status instance.vcpus
		instance.version instance.volumeGB instance.zones
		metrics.afterwards.action metrics.afterwards.from metrics.afterwards.message metrics.afterwards.reason metrics.afterwards.to
		metrics.atThreshold.action metrics.atThreshold.from metrics.atThreshold.looksAgainSeconds metrics.atThreshold.message
		metrics.atThreshold.reason metrics.atThreshold.to
		metrics.candidates.code metrics.candidates.memoryGB metrics.candidates.refused metrics.candidates.vcpus metrics.candidates.zone
		metrics.candidates.zoneState
		metrics.decision.action metrics.decision.looksAgainSeconds metrics.decision.message metrics.decision.reason
		metrics.guards.ends metrics.guards.message metrics.guards.reason
		metrics.measuredTime metrics.metric metrics.thresholdPercent metrics.usedGB metrics.valuePercent
		mode name namespace notes time`)
	if diff := cmp.Diff(want, slices.Compact(keys)); diff != "" {
		t.Error(diff)
	}
}

func TestPlanOptions(t *testing.T) {
	for name, args := range map[string][]string{
		"no name": {"-n", "shop"}, "two names": {"-n", "shop", "a", "b"}, "another format": {"-n", "shop", "orders", "-o", "xml"},
		"an unknown flag": {"-n", "shop", "orders", "--nope"}, "serve's flag": {"-n", "shop", "orders", "--public-url", "https://a.example"},
		"an unknown mode": {"-n", "shop", "orders", "--mode", "auto"}, "no rate": {"-n", "shop", "orders", "--cloud-rate", "0"},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), append([]string{"plan"}, args...), environment(), nil, &out, &errs); code != exitUsage || out.Len() != 0 || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, %q, %q", name, code, out.String(), errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"plan", "--help"}, environment(), nil, &out, &errs); code != exitOK || !strings.Contains(out.String(), "-endpoint") || errs.Len() != 0 {
		t.Errorf("help: exit code %d, %q, %q", code, out.String(), errs.String())
	}
}
