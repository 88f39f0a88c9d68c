// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

func TestEnsureCreatesARuleForEachMetricAndRecordsEachBeforeTheNext(t *testing.T) {
	w := newWorld(t)
	var steps []string
	_, restored, err := w.alarms.Ensure(t.Context(), w.desired(), func(observed v1alpha1.Alarms) error {
		steps = append(steps, fmt.Sprintf("%d recorded, %d exist", len(observed.Rules), len(w.sim.Rules())))
		return w.record(observed)
	})
	if err != nil || len(restored) > 0 {
		t.Fatal(err, restored)
	}
	if diff := cmp.Diff([]string{"1 recorded, 1 exist", "2 recorded, 2 exist", "3 recorded, 3 exist"}, steps); diff != "" {
		t.Error(diff)
	}
	rule := w.sim.Rules()[0]
	action := []simcloud.Action{{Type: "notification", NotificationList: []string{w.topicURN()}}}
	if diff := cmp.Diff(simcloud.Rule{
		Name:        "autopilot_shop_orders_" + strings.Split(rule.Name, "_")[3] + "_storage",
		Description: ourMark,
		Metric: simcloud.Metric{
			Namespace: "SYS.RDS", MetricName: "rds039_disk_util",
			Dimensions: []simcloud.Dimension{{Name: "rds_cluster_id", Value: w.instance}},
		},
		Condition: simcloud.Condition{
			Period: 1, Filter: "average", ComparisonOperator: ">=", Value: 75, Unit: "%", Count: 5, SuppressDuration: 900,
		},
		Enabled: true, Level: 2, ActionEnabled: true, AlarmActions: action, OKActions: action,
		ID: rule.ID, State: rule.State, UpdateTime: rule.UpdateTime,
	}, rule); diff != "" {
		t.Error(diff)
	}
	w.checkInOrder(w.desired())
	w.sim.Configure(func(s *simcloud.Settings) { s.Normalizes, s.StateInCapitals = true, true })
	w.restart()
	w.checkInOrder(w.desired())
}

func TestRecordedRuleIsKeptAndItsDuplicatesAreDeleted(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	first := w.recorded.Rules[1].AlarmID
	second, _ := w.add(func(*otc.Rule) {}), w.add(func(r *otc.Rule) { r.Threshold = 1 })
	w.recorded.Rules[1].AlarmID = second
	if restored := w.ensure(w.desired()); restored != "" {
		t.Errorf("restored %q", restored)
	}
	if diff := cmp.Diff([]string{"DeleteAlarm", "DeleteAlarm"}, w.writes()); diff != "" {
		t.Error(diff)
	}
	if kept := w.recorded.Rules[1].AlarmID; kept != second {
		t.Errorf("kept %s, recorded was %s, created first %s", kept, second, first)
	}
	w.checkInOrder(w.desired())
}

func TestEnsureReplacesRulesOfAnotherInstance(t *testing.T) {
	w := newWorld(t)
	other := w.desired()
	other.Dimension, other.Engine, other.InstanceID = "", "MySQL", strings.Repeat("e", 32)+"in01"
	for _, isRecorded := range []bool{true, false} {
		w.reset(t)
		w.ensure(other)
		if !isRecorded {
			w.recorded = v1alpha1.Alarms{}
		}
		w.ensure(w.desired())
		w.checkInOrder(w.desired())
	}
}

func TestEnsureAppliesPolicyChanges(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*v1alpha1.DesiredAlarms){
		"threshold":                    func(d *v1alpha1.DesiredAlarms) { d.Rules[1].ThresholdPercent = 70 },
		"fields that are not recorded": func(d *v1alpha1.DesiredAlarms) { d.Rules[1].PeriodSeconds, d.Rules[1].Count = 1200, 1 },
		"only recommends":              func(d *v1alpha1.DesiredAlarms) { d.Recommends = true },
		"metric disabled":              func(d *v1alpha1.DesiredAlarms) { d.Rules = slices.Delete(d.Rules, 1, 2) },
		"all metrics disabled":         func(d *v1alpha1.DesiredAlarms) { d.Rules = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t)
			w.ensure(w.desired())
			desired := w.desired()
			change(&desired)
			if w.ensure(desired); len(w.writes()) == 0 {
				t.Error("nothing is written")
			}
			w.checkInOrder(desired)
		})
	}
}

func TestRulesDoNotWaitForTheTopic(t *testing.T) {
	w := newWorld(t)
	without := w.desired()
	without.TopicURN = ""
	w.ensure(without)
	w.checkInOrder(without)
	if r := w.rule(v1alpha1.MetricCPU); r.ActionEnabled || len(r.AlarmActions)+len(r.OKActions) > 0 {
		t.Errorf("created without a topic: %+v", r)
	}
	w.ensure(w.desired())
	r, topic := w.rule(v1alpha1.MetricCPU), []string{w.topicURN()}
	if !r.ActionEnabled || !cmp.Equal(r.AlarmActions, topic) || !cmp.Equal(r.OKActions, topic) {
		t.Errorf("the topic exists: %+v", r)
	}
	w.checkInOrder(w.desired())
	w.checkInOrder(without) // while the topic is unknown, the rules keep it
}

// The list that all databases share may be older than the last change.
func TestEnsureListsAgainBeforeItChangesAnything(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	now, err := w.cloud.ListRules(t.Context())
	w.must(err)
	drifted := slices.Clone(now)
	drifted[0].Threshold = 99
	for name, stale := range map[string][]otc.Rule{"empty": {}, "incomplete": now[1:], "drifted": drifted} {
		w.stale = stale
		if restored := w.ensure(w.desired()); restored != "" || len(w.writes()) > 0 {
			t.Errorf("%s: restored %q, wrote %v", name, restored, w.writes())
		}
	}
	w.stale = nil
	w.checkInOrder(w.desired())
}

func TestEnsureStopsWhenARuleCannotBeRecorded(t *testing.T) {
	w := newWorld(t)
	failed := errors.New("the API server does not answer")
	for n := 1; n <= 2; n++ {
		w.reset(t)
		calls := 0
		observed, _, err := w.alarms.Ensure(t.Context(), w.desired(), func(v1alpha1.Alarms) error {
			if calls++; calls == n {
				return failed
			}
			return nil
		})
		if !errors.Is(err, failed) || len(w.sim.Rules()) != n || len(observed.Rules) != n {
			t.Errorf("record %d: %d rules, observed %+v, %v", n, len(w.sim.Rules()), observed, err)
		}
		if restored := w.ensure(w.desired()); restored != "" { // nothing is recorded
			t.Errorf("record %d: restored %q", n, restored)
		}
		w.checkInOrder(w.desired())
	}
}

func TestEnsureRepairsChangesByOthersAndReportsThemOnce(t *testing.T) {
	type test struct {
		do       func(*world)
		writes   []string
		restored string
	}
	remove := func(w *world) { w.sim.RemoveRule(w.rule(v1alpha1.MetricCPU).ID) }
	disable := func(w *world) { w.must(w.cloud.EnableRule(w.t.Context(), w.rule(v1alpha1.MetricCPU).ID, false)) }
	tests := map[string]test{
		"deleted": {remove, []string{"CreateAlarm"}, "cpu"},
		"replaced by a changed copy": {func(w *world) {
			w.add(func(r *otc.Rule) { r.Threshold = 99.5 })
			remove(w)
		}, []string{"UpdateAlarm"}, "cpu"},
		"replaced by one of another instance": {func(w *world) {
			w.add(func(r *otc.Rule) { r.DimensionValue = "other" })
			remove(w)
		}, []string{"DeleteAlarm", "CreateAlarm"}, "cpu"},
		"disabled": {disable, []string{"SwitchAlarm"}, "cpu"},
		"disabled and changed": {func(w *world) {
			w.modify(func(r *otc.Rule) { r.Count = 1 })
			disable(w)
		}, []string{"UpdateAlarm", "SwitchAlarm"}, "cpu"},
	}
	for field, change := range map[string]func(*otc.Rule){
		"threshold":        func(r *otc.Rule) { r.Threshold = 99.5 },
		"period":           func(r *otc.Rule) { r.Period = 3600 },
		"count":            func(r *otc.Rule) { r.Count = 1 },
		"repeat":           func(r *otc.Rule) { r.Repeat = 0 },
		"comparison":       func(r *otc.Rule) { r.Comparison = "<" },
		"filter":           func(r *otc.Rule) { r.Filter = "min" },
		"name":             func(r *otc.Rule) { r.Name = "renamed" },
		"description":      func(r *otc.Rule) { r.Description = "mine" },
		"no notifications": func(r *otc.Rule) { r.ActionEnabled = false },
		"another topic": func(r *otc.Rule) {
			other := []string{r.AlarmActions[0] + "-other"}
			r.AlarmActions, r.OKActions = other, other
		},
		"recommends only": func(r *otc.Rule) { r.Description += " recommends only" },
	} {
		tests[field] = test{func(w *world) { w.modify(change) }, []string{"UpdateAlarm"}, "cpu"}
	}
	w := newWorld(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w.reset(t)
			w.ensure(w.desired())
			tt.do(w)
			restored := w.ensure(w.desired())
			if diff := cmp.Diff(tt.writes, w.writes()); diff != "" || restored != tt.restored {
				t.Errorf("restored %q, want %q; writes:\n%s", restored, tt.restored, diff)
			}
			w.checkInOrder(w.desired())
			if r := w.rule(v1alpha1.MetricCPU); r.Description != ourMark {
				t.Errorf("rule %+v", r)
			}
		})
	}
}

func TestIneffectiveRepairIsReportedAndNotRepeatedAtOnce(t *testing.T) {
	w := newWorld(t)
	for name, tt := range map[string]struct {
		show      func(*otc.Rule)
		writes    int
		remaining string // empty if the rule does its job in spite of the difference
	}{
		"filter":              {func(r *otc.Rule) { r.Filter = "avg" }, 1, ""},
		"threshold":           {func(r *otc.Rule) { r.Threshold = 99 }, 1, "threshold"},
		"enabled, and filter": {func(r *otc.Rule) { r.Enabled, r.Filter = false, "avg" }, 2, "enabled, filter"},
		"description":         {func(r *otc.Rule) { r.Description = strings.ToUpper(r.Description) }, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t)
			w.ensure(w.desired())
			w.show = tt.show
			check := func(when string, writes int) {
				t.Helper()
				restored, err := w.try(w.desired())
				if tt.remaining == "" && err != nil || tt.remaining != "" && (err == nil || err.Error() !=
					"the cpu rule was written, and Cloud Eye still shows different values: "+tt.remaining) {
					t.Errorf("%s: %v", when, err)
				}
				if len(w.writes()) != writes || len(restored) > 0 || len(w.recorded.Rules) != 3 {
					t.Errorf("%s: restored %v, wrote %v, recorded %+v", when, restored, w.writes(), w.recorded)
				}
			}
			check("first run", tt.writes)
			check("second run", 0)
			w.advance(29 * time.Minute)
			check("29 minutes later", 0)
			w.advance(time.Minute)
			if tt.remaining != "" {
				check("half an hour later", tt.writes)
			}
			w.recorded = v1alpha1.Alarms{} // each rule is found by its name
			check("without a record", 0)
			if n := len(w.sim.Rules()); n != 3 {
				t.Errorf("%d rules", n)
			}
			w.show = nil
			w.checkInOrder(w.desired())
			w.show = tt.show
			check("the same difference again", tt.writes)
		})
	}
}

func TestFullQuotaIsReportedOnceWithItsNumbersAndOtherRulesAreRepaired(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	memory := w.rule(v1alpha1.MetricMemory).ID
	for _, r := range w.sim.Rules() {
		if r.ID != memory {
			w.sim.RemoveRule(r.ID)
		}
	}
	w.must(w.cloud.EnableRule(t.Context(), memory, false))
	w.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 1 })
	restored, err := w.try(w.desired())
	const want = "quota exceeded: 1 of 1 alarm rules used: the storage rule cannot be created: "
	if !errors.Is(err, v1alpha1.ErrQuota) || !strings.HasPrefix(err.Error(), want) ||
		strings.Count(err.Error(), "cannot be created") != 1 || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want %s", err, want)
	}
	if w.recorded.Refused != err.Error() || len(w.recorded.Rules) != 1 || !w.rule(v1alpha1.MetricMemory).Enabled ||
		!cmp.Equal(restored, []v1alpha1.Metric{v1alpha1.MetricMemory}) {
		t.Errorf("recorded %+v, restored %v; want the memory rule enabled", w.recorded, restored)
	}
	w.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 1000 })
	if restored := w.ensure(w.desired()); restored != "" {
		t.Errorf("restored %q", restored)
	}
	w.checkInOrder(w.desired())
}

// The removal of a superfluous rule makes room for another one.
func TestRulesAreRemovedBeforeOthersAreCreated(t *testing.T) {
	w := newWorld(t)
	w.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 1 })
	for _, i := range []int{2, 0} {
		desired := w.desired()
		desired.Rules = desired.Rules[i : i+1]
		w.ensure(desired)
		w.checkInOrder(desired)
	}
}

func TestRefusedRuleIsReportedUntilItIsCreated(t *testing.T) {
	w := newWorld(t)
	w.refuse("CreateAlarm")
	_, err := w.try(w.desired())
	if !errors.Is(err, v1alpha1.ErrRuleRefused) || errors.Is(err, v1alpha1.ErrQuota) ||
		strings.Count(err.Error(), "403 Not.0001 Not today") != 3 || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line with three refusals", err)
	}
	refusal := w.recorded.Refused
	if refusal != err.Error() || len(w.recorded.Rules) != 0 {
		t.Errorf("recorded %+v", w.recorded)
	}
	w.refuse("ListAlarms") // no answer about rules takes nothing back
	if _, err := w.try(w.desired()); err == nil || errors.Is(err, v1alpha1.ErrRuleRefused) || w.recorded.Refused != refusal {
		t.Errorf("%v, recorded %+v", err, w.recorded)
	}
	w.refuse()
	w.ensure(w.desired())
	w.checkInOrder(w.desired())
	w.sim.RemoveRule(w.rule(v1alpha1.MetricCPU).ID)
	w.refuse("CreateAlarm")
	if restored, _ := w.try(w.desired()); len(restored) > 0 || len(w.recorded.Rules) != 2 || w.recorded.Refused == "" {
		t.Errorf("a rule that is gone and refused: restored %v, recorded %+v", restored, w.recorded)
	}
}

func TestCloudEyeThatDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	try := func(when, text string, creates, rules int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		desired := w.desired()
		desired.Recorded = w.recorded
		w.sim.ResetRequests()
		observed, _, err := w.alarms.Ensure(ctx, desired, w.record)
		if err == nil || !strings.Contains(err.Error(), text) || errors.Is(err, v1alpha1.ErrRuleRefused) ||
			!errors.Is(err, otc.ErrUnavailable) || observed.Refused != "" || len(observed.Rules) != rules ||
			w.sim.Count("ces", "CreateAlarm") != creates {
			t.Errorf("%s: %v, %v, observed %+v", when, w.writes(), err, observed)
		}
	}
	w.fail(simcloud.Fault{Status: 503}, "CreateAlarm")
	try("nothing is created", "the storage rule cannot be created", 1, 0) // and the others are not tried
	w.fail(simcloud.Fault{Status: 404, Body: "<html>"}, "CreateAlarm")
	if _, err := w.try(w.desired()); err == nil || errors.Is(err, v1alpha1.ErrRuleRefused) {
		t.Errorf("the page of a proxy: %v", err)
	}
	w.refuse()
	w.ensure(w.desired())
	for _, fault := range []simcloud.Fault{{Status: 503}, {Hang: true}} {
		w.fail(fault, "ListAlarms")
		try("no list", "the alarm rules cannot be listed", 0, 3)
	}
	w.refuse()
	w.checkInOrder(w.desired())
}

func TestEnsureContinuesAfterOneRefusal(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	w.sim.RemoveRule(w.rule(v1alpha1.MetricMemory).ID)
	w.must(w.cloud.EnableRule(t.Context(), w.rule(v1alpha1.MetricStorage).ID, false))
	grown := w.desired()
	grown.Rules[0].ThresholdPercent = 60
	w.refuse("SwitchAlarm", "UpdateAlarm")
	restored, err := w.try(grown)
	const text = "the storage rule cannot be repaired: ces ModifyRule: 403 Not.0001 Not today"
	if err == nil || err.Error() != text || w.recorded.Refused != "" ||
		!cmp.Equal(restored, []v1alpha1.Metric{v1alpha1.MetricMemory}) {
		t.Errorf("restored %v, %v", restored, err)
	}
	if len(w.recorded.Rules) != 3 || w.recorded.Rules[0].ThresholdPercent != 75 {
		t.Errorf("recorded %+v, want the threshold that the rule has", w.recorded)
	}
	// A rule that cannot be removed stays recorded.
	without := w.desired()
	without.Rules = without.Rules[:2]
	w.refuse("DeleteAlarm")
	if _, err := w.try(without); err == nil || len(w.recorded.Rules) != 3 {
		t.Errorf("%v, recorded %+v", err, w.recorded)
	}
	w.refuse()
	w.ensure(without)
	w.checkInOrder(without)
}

func TestObjectWhoseNameDoesNotFitIntoAMarkHasNoRules(t *testing.T) {
	w := newWorld(t)
	desired := w.desired()
	desired.Name = strings.Repeat("n", 157)
	if _, err := w.try(desired); !errors.Is(err, v1alpha1.ErrNameTooLong) || len(w.sim.Requests()) > 0 || w.recorded.Refused != "" {
		t.Errorf("%v, recorded %+v", err, w.recorded)
	}
	desired.Name = desired.Name[1:]
	w.ensure(desired)
	for _, r := range w.sim.Rules() {
		if mark, ok := alarms.ParseMark(r.Description); !ok || mark.Name != desired.Name || len(r.Name) > 100 {
			t.Errorf("rule %s %s", r.Name, r.Description)
		}
	}
}
