// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// noon is a Wednesday.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(noon.Add(-d))) }

// quiet returns a database with low usage that the autopilot may change.
func quiet() *Situation {
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
	facts := autopilot.Facts{}
	for _, f := range []autopilot.Fact{
		autopilot.FactInstance, autopilot.FactAlarmState, autopilot.FactUsedSpace, autopilot.FactUsage, autopilot.FactCatalogue,
		autopilot.FactSizeWriter, autopilot.FactFlavorWriter, autopilot.FactPlace, autopilot.FactResizeList,
	} {
		facts[f] = nil
	}
	return &Situation{
		Namespace: "shop", Name: "orders",
		Read: func(_ context.Context, c *autopilot.Case, facts []autopilot.Fact) {
			for _, f := range facts {
				c.SetFact(f, errors.New("the test reads nothing"))
			}
		},
		Evidence: map[v1alpha1.Metric]autopilot.Evidence{
			v1alpha1.MetricStorage: measured(0, 42), v1alpha1.MetricCPU: measured(12.5, 0), v1alpha1.MetricMemory: measured(50, 0),
		},
		Case: autopilot.Case{
			Now: noon, Mode: v1alpha1.ModeAuto, Spec: autopilot.DefaultSpec(), Generation: 3, Recheck: 30 * time.Second,
			Wanted: autopilot.Wanted{VolumeGB: 100, Flavor: inst.Flavor}, Instance: inst, Facts: facts, HasPlace: true,
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

// changedLately adds two flavor changes and a closed window, so that cooldown, budget and window prevent a change.
func changedLately(s *Situation) {
	for _, back := range []time.Duration{23 * time.Minute, 7 * time.Hour} {
		s.Status.Changes = append(s.Status.Changes, v1alpha1.Change{
			Kind: v1alpha1.KindFlavor, By: v1alpha1.ByAutopilot, From: "rds.mysql.n1.medium.4.ha", To: "rds.mysql.n1.large.4.ha",
			Metrics: []v1alpha1.Metric{v1alpha1.MetricCPU}, ValuePercent: "96.0", DecisionTime: ago(back + 10*time.Minute),
			CompletionTime: *ago(back), Outcome: v1alpha1.OutcomeCompleted, Generation: 3,
		})
	}
	s.Spec.Flavor.Window = &v1alpha1.Window{Days: []v1alpha1.Day{"Sat"}, Start: "01:00", End: "05:00", TimeZone: "UTC"}
}

func TestPlanNamesTheFirstGuardAndTheDecisionAtTheThreshold(t *testing.T) {
	for _, tc := range []struct {
		name        string
		alter       func(*Situation)
		metric      v1alpha1.Metric
		now         autopilot.Reason
		atThreshold string // reason and target
		candidates  int
	}{
		{"storage below the threshold would grow at it", func(*Situation) {}, v1alpha1.MetricStorage, autopilot.ReasonBelowThreshold, "AlarmInForce 110", 0},
		{"a full volume grows now", func(s *Situation) {
			s.Evidence[v1alpha1.MetricStorage] = autopilot.Evidence{Time: noon, UsedGB: 92}
		}, v1alpha1.MetricStorage, autopilot.ReasonAlarmInForce, "", 0},
		{"a threshold that is no whole number of GB is reached", func(s *Situation) { s.Instance.VolumeGB, s.Wanted.VolumeGB = 80, 80 }, v1alpha1.MetricStorage, autopilot.ReasonBelowThreshold, "AlarmInForce 90", 0},
		{"without data, the decision at the threshold is known", func(s *Situation) { s.Evidence = nil }, v1alpha1.MetricStorage, autopilot.ReasonNoData, "AlarmInForce 110", 0},
		{"CPU below the threshold would change the flavor at it", func(*Situation) {}, v1alpha1.MetricCPU, autopilot.ReasonBelowThreshold, "AlarmInForce rds.mysql.n1.2xlarge.4.ha", 3},
		{"a change that this check has seen first counts as measured", func(s *Situation) {
			changedLately(s)
			s.Status.Changes[0].CompletionTime = *ago(0)
		}, v1alpha1.MetricCPU, autopilot.ReasonStaleEvidence, "Cooldown ", 3},
		{"candidates are listed behind a pending change", func(s *Situation) { s.Wanted.Flavor = "rds.mysql.n1.2xlarge.4.ha" }, v1alpha1.MetricMemory,
			autopilot.ReasonBelowThreshold, "ChangePending ", 3},
		{"candidates are listed while autopilot is off", func(s *Situation) {
			s.Off = autopilot.Off{Reason: autopilot.ReasonNotEnabled, Message: "The mode is Off"}
		}, v1alpha1.MetricMemory, autopilot.ReasonNotEnabled, "", 3},
		{"without an instance nothing else is known", func(s *Situation) { s.Instance, s.Evidence = nil, nil }, v1alpha1.MetricCPU, autopilot.ReasonInstanceUnknown, "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := quiet()
			tc.alter(s)
			before, err := json.Marshal(s.Case)
			if err != nil {
				t.Fatal(err)
			}
			all := s.Plan(t.Context()).Metrics
			m := all[slices.IndexFunc(all, func(m Metric) bool { return m.Metric == tc.metric })]
			atThreshold := ""
			if m.AtThreshold != nil {
				atThreshold = string(m.AtThreshold.Reason) + " " + m.AtThreshold.To
			}
			got := []any{m.Decision.Reason, atThreshold, len(m.Candidates)}
			if diff := cmp.Diff([]any{tc.now, tc.atThreshold, tc.candidates}, got); diff != "" {
				t.Errorf("now, at the threshold, candidates:\n%s", diff)
			}
			if after, err := json.Marshal(s.Case); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the case was modified (%v):\n%s", err, cmp.Diff(string(before), string(after)))
			}
		})
	}
}

func TestPlanDescribesTheGrowthOfEachReadReplica(t *testing.T) {
	const reported = ". ReplicaSmaller reports a replica that is smaller than its primary"
	for name, tc := range map[string]struct {
		alter         func(*Situation)
		reader, spare string // their steps
		text          string // of reader
	}{
		"apply: Cloud": {func(*Situation) {}, "GrowsFirst", "Stays", "100 → 110 GB before the primary"},
		"growth by two steps now": {func(s *Situation) {
			s.Evidence[v1alpha1.MetricStorage] = autopilot.Evidence{Time: noon, UsedGB: 99}
		}, "GrowsAfter", "GrowsAfter", "100 → 120 GB after the primary, which cannot wait"},
		"no size": {func(s *Situation) { s.Instance.Replicas[1].VolumeGB = 0 }, "SizeUnknown", "Stays",
			"the cloud reports no size, so the autopilot does not grow it"},
		"not listed": {func(s *Situation) {
			s.Instance.Replicas[0].IsForbidden, s.Instance.Replicas[1].IsForbidden = true, true
		}, "StaysSmaller", "Stays",
			"stays at 100 GB, because --allowed-instances does not list it" + reported},
		"at the cap": {func(s *Situation) { s.Spec.Storage.MaxGB = 100 }, "Stays", "Stays", "stays at 100 GB"},
		"a cap of its own": {func(s *Situation) {
			s.Instance.Replicas[1].ManagedBy, s.Instance.Replicas[1].MaxGB = "shop/reader", 100
		}, "StaysSmaller", "Stays", "stays at 100 GB, because the cap of shop/reader is 100 GB" + reported},
	} {
		t.Run(name, func(t *testing.T) {
			s := quiet()
			s.Spec.Apply = v1alpha1.ApplyCloud
			s.Instance.Replicas = []autopilot.Replica{
				{ID: "r1", Name: "spare", VolumeGB: 110}, {ID: "r2", Name: "reader", VolumeGB: 100},
			}
			tc.alter(s)
			p := s.Plan(t.Context())
			var got []string
			for _, r := range p.Replicas {
				got = append(got, r.Name, r.ID, string(r.Step))
			}
			if diff := cmp.Diff([]string{"reader", "r2", tc.reader, "spare", "r1", tc.spare}, got); diff != "" {
				t.Error(diff)
			}
			text, err := p.Text()
			if err != nil || !strings.Contains(string(text), "\n  Read replica reader (r2): "+tc.text+"\n") {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
}

func TestTextWritesATableAndDetails(t *testing.T) {
	s := quiet()
	changedLately(s)
	s.Evidence[v1alpha1.MetricStorage] = autopilot.Evidence{Time: noon, UsedGB: 92.04}
	delete(s.Evidence, v1alpha1.MetricMemory)
	s.Notes = []string{"Not armed yet: no alarm would reach the autopilot"}
	got, err := s.Plan(t.Context()).Text()
	if err != nil {
		t.Fatal(err)
	}
	const want = `shop/orders, mode Auto: MySQL 8.0 ha, 100 GB, rds.mysql.n1.large.4.ha (2 vCPUs, 8 GB), ACTIVE, in eu-de-01, eu-de-02
  Not armed yet: no alarm would reach the autopilot
  The plan ignores flavor changes of other databases in the cluster (--max-flavor-changes)

IF THE ALARM CAME   VALUE NOW          ALARM AT   DECISION NOW           REASON           NEXT CHECK
storage             92.0 % (92.0 GB)   85 %       GrowVolume 100 → 110   AlarmInForce     on an event
cpu                 12.5 %             90 %       nothing                BelowThreshold   in 1m
memory              no data            90 %       nothing                NoData           in 1m

storage: Storage 100 → 110 GB: 92.0 % used, alarm at 85 %

cpu: The flavor stays rds.mysql.n1.large.4.ha: 12.5 % CPU used, alarm at 90 %. Next check at 2026-03-04T12:01:00Z
  Not met: A recent measurement is at or over the threshold (storage: or the database is read-only; flavor: it is newer than the last change)
  At 90 %: nothing (Cooldown). The flavor changed at 2026-03-04T11:37:00Z, and the cooldown is 1 hour. Next check at 2026-03-04T12:37:00Z
  Not met: The cooldown has passed since our last change, and fewer changes than allowed were made in 24 hours
  CANDIDATE                   VCPUS   GB   REFUSED
  rds.mysql.n1.xlarge.4.ha    4       16   not available in every zone: sellout in eu-de-02
  rds.mysql.n1.2xlarge.4.ha   8       32   no
  rds.mysql.n1.4xlarge.4.ha   16      64   above the caps
`
	if diff := cmp.Diff(want, string(got[:strings.Index(string(got), "\nmemory:")])); diff != "" {
		t.Error(diff)
	}
}

func TestPlanHasStableKeysInJSON(t *testing.T) {
	s := quiet()
	changedLately(s)
	s.Instance.Replicas = []autopilot.Replica{{ID: "r1", Name: "reader", VolumeGB: 100}}
	text, err := json.Marshal(s.Plan(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	var fromJSON map[string]any
	if err := json.Unmarshal(text, &fromJSON); err != nil {
		t.Fatal(err)
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
		metrics.atThreshold.action metrics.atThreshold.from metrics.atThreshold.guard metrics.atThreshold.message
		metrics.atThreshold.nextCheckSeconds metrics.atThreshold.reason metrics.atThreshold.to
		metrics.candidates.code metrics.candidates.memoryGB metrics.candidates.refused metrics.candidates.vcpus metrics.candidates.zone
		metrics.candidates.zoneState
		metrics.decision.action metrics.decision.guard metrics.decision.message metrics.decision.nextCheckSeconds metrics.decision.reason
		metrics.measuredTime metrics.metric metrics.thresholdPercent metrics.usedGB metrics.valuePercent
		mode name namespace notes replicas.id replicas.message replicas.name replicas.step replicas.volumeGB time`)
	if diff := cmp.Diff(want, slices.Compact(keys)); diff != "" {
		t.Error(diff)
	}
}
