// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// ruleID returns the id of the recorded rule of a metric.
func ruleID(w *world, metric v1alpha1.Metric) string {
	for _, r := range w.recorded.Rules {
		if r.Metric == metric {
			return r.AlarmID
		}
	}
	return ""
}

// modifyRule returns a function that changes the rule of a metric in Cloud Eye.
func modifyRule(metric v1alpha1.Metric, change func(*otc.Rule)) func(*world, context.Context) error {
	return func(w *world, ctx context.Context) error {
		r, err := w.cloud.Rule(ctx, ruleID(w, metric))
		if err != nil {
			return err
		}
		change(&r)
		return w.cloud.ModifyRule(ctx, r.ID, r)
	}
}

// copyRule returns a function that creates a changed copy of the rule of a metric in Cloud Eye.
func copyRule(metric v1alpha1.Metric, change func(*otc.Rule)) func(*world, context.Context) error {
	return func(w *world, ctx context.Context) error {
		r, err := w.cloud.Rule(ctx, ruleID(w, metric))
		if err != nil {
			return err
		}
		change(&r)
		_, err = w.cloud.CreateRule(ctx, r)
		return err
	}
}

// deleteRule returns a function that deletes the rule of a metric in Cloud Eye.
func deleteRule(metric v1alpha1.Metric) func(*world, context.Context) error {
	return func(w *world, ctx context.Context) error { return w.cloud.DeleteRule(ctx, ruleID(w, metric)) }
}

func setThreshold(r *otc.Rule) { r.Threshold = 99.5 }

// change is what somebody else does to the alarms of a database, and what Ensure does about it.
type change struct {
	do           func(*world, context.Context) error
	writes       []string
	repaired     []string
	onlySnapshot bool // Ensure sees it only in a snapshot
}

func changesByOthers() map[string]change {
	all := map[string]change{
		"rule disabled": {
			do: func(w *world, ctx context.Context) error {
				return w.cloud.EnableRule(ctx, ruleID(w, v1alpha1.MetricMemory), false)
			},
			writes: []string{"SwitchAlarm"}, repaired: []string{"the memory rule was restored"},
		},
		"rule deleted": {
			do: deleteRule(v1alpha1.MetricStorage), writes: []string{"CreateAlarm"},
			repaired: []string{"the storage rule was restored"},
		},
		"rule copied": {
			do: copyRule(v1alpha1.MetricMemory, func(*otc.Rule) {}), writes: []string{"DeleteAlarm"},
			repaired: []string{"the memory rule was restored"},
		},
		"rule deleted after it was copied": {
			do: func(w *world, ctx context.Context) error {
				err := copyRule(v1alpha1.MetricCPU, func(*otc.Rule) {})(w, ctx)
				return errors.Join(err, deleteRule(v1alpha1.MetricCPU)(w, ctx))
			},
			repaired: []string{"the cpu rule was restored"},
		},
		"rule replaced by one of another instance": {
			do: func(w *world, ctx context.Context) error {
				err := copyRule(v1alpha1.MetricCPU, func(r *otc.Rule) { r.DimensionValue = "other" })(w, ctx)
				return errors.Join(err, deleteRule(v1alpha1.MetricCPU)(w, ctx))
			},
			writes:   []string{"DeleteAlarm", "CreateAlarm"},
			repaired: []string{"the cpu rule was restored"},
		},
		"topic deleted": {
			do:     func(w *world, ctx context.Context) error { return w.cloud.DeleteTopic(ctx, w.recorded.TopicURN) },
			writes: []string{"CreateTopic", "Subscribe"}, repaired: []string{"the topic was restored"},
		},
		"display name of the topic": {
			do: func(w *world, ctx context.Context) error {
				return w.cloud.UpdateTopic(ctx, w.recorded.TopicURN, "mine")
			},
			writes: []string{"UpdateTopic"}, repaired: []string{"the topic was restored"},
			onlySnapshot: true,
		},
		"subscription deleted": {
			do: func(w *world, ctx context.Context) error {
				return w.cloud.Unsubscribe(ctx, w.recorded.SubscriptionURN)
			},
			writes: []string{"Subscribe"}, repaired: []string{"the subscription is requested again"},
		},
		"subscription canceled by its link": {
			do:     func(w *world, _ context.Context) error { w.sim.Unsubscribe(w.recorded.SubscriptionURN); return nil },
			writes: []string{"Subscribe"}, repaired: []string{"the subscription is requested again"},
		},
		"confirmation requested again by hand": {
			do: func(w *world, ctx context.Context) error {
				w.sim.Confirm(w.recorded.SubscriptionURN)
				w.ensureWithSnapshot(w.desired())
				w.advance(2 * retryConfirmation)
				w.sim.Unsubscribe(w.recorded.SubscriptionURN)
				_, err := w.cloud.Subscribe(ctx, w.recorded.TopicURN, "https", ourURL, "")
				return err
			},
			writes: []string{"Subscribe"}, repaired: []string{"the subscription is requested again"},
		},
		// A process that ended before it recorded its changes leaves the same state.
		"record lost": {
			do:     func(w *world, _ context.Context) error { w.recorded = v1alpha1.Alarms{}; return nil },
			writes: []string{"CreateTopic"},
		},
		"record of the rules lost": {
			do: func(w *world, _ context.Context) error { w.recorded.Rules = w.recorded.Rules[:1]; return nil },
		},
	}
	for field, modify := range map[string]func(*otc.Rule){
		"threshold":   setThreshold,
		"period":      func(r *otc.Rule) { r.Period = 3600 },
		"count":       func(r *otc.Rule) { r.Count = 1 },
		"repeat":      func(r *otc.Rule) { r.Repeat = 0 },
		"comparison":  func(r *otc.Rule) { r.Comparison = "<" },
		"filter":      func(r *otc.Rule) { r.Filter = "min" },
		"description": func(r *otc.Rule) { r.Description = "mine" },
		"name":        func(r *otc.Rule) { r.Name = "renamed" },
	} {
		all[field+" of a rule"] = change{do: modifyRule(v1alpha1.MetricCPU, modify), writes: []string{"UpdateAlarm"},
			repaired: []string{"the cpu rule was restored"}}
	}
	for name, modify := range map[string]func(*otc.Rule){
		"notifications of a rule turned off": func(r *otc.Rule) { r.ActionEnabled = false },
		"another topic of a rule": func(r *otc.Rule) {
			other := []string{r.AlarmActions[0] + "-other"}
			r.AlarmActions, r.OKActions = other, other
		},
	} {
		all[name] = change{do: modifyRule(v1alpha1.MetricCPU, modify), writes: []string{"UpdateAlarm"},
			repaired: []string{"the cpu rule was restored"}}
	}
	return all
}

func TestEnsureRepairsChangesByOthers(t *testing.T) {
	w := newWorld(t)
	for name, tt := range changesByOthers() {
		for _, withSnapshot := range []bool{false, true} {
			if tt.onlySnapshot && !withSnapshot {
				continue
			}
			t.Run(fmt.Sprintf("%s, with a snapshot %t", name, withSnapshot), func(t *testing.T) {
				w.t = t
				w.reset()
				w.ensure(w.desired())
				before := w.objects()
				if err := tt.do(w, t.Context()); err != nil {
					t.Fatal(err)
				}
				ensure := w.ensure
				if withSnapshot {
					ensure = w.ensureWithSnapshot
				}
				w.sim.ResetRequests()
				repaired := ensure(w.desired())
				if diff := cmp.Diff(tt.writes, w.writes()); diff != "" {
					t.Errorf("writes:\n%s", diff)
				}
				if diff := cmp.Diff(tt.repaired, repaired); diff != "" {
					t.Errorf("repaired:\n%s", diff)
				}
				if diff := cmp.Diff(before, w.objects()); diff != "" {
					t.Error(diff)
				}
				w.checkRecord()
				w.checkNothingToDo(w.desired())
			})
		}
	}
}

func TestEnsureDoesNotReportPolicyChangesAsRepaired(t *testing.T) {
	withoutMemory := func(d *v1alpha1.DesiredAlarms) { d.Rules = d.Rules[:2] }
	rename := func(r *otc.Rule) { r.Name = "renamed" }
	tests := map[string]struct {
		before   func(*world, context.Context) error // what others do before the policy changes
		change   func(*v1alpha1.DesiredAlarms)
		endpoint string
		repaired []string
	}{
		"growth": {change: func(d *v1alpha1.DesiredAlarms) { d.Rules[0].ThresholdPercent = 80 }},
		"all fields of a rule": {change: func(d *v1alpha1.DesiredAlarms) {
			r := &d.Rules[1]
			r.ThresholdPercent, r.PeriodSeconds, r.Count, r.RepeatSeconds = 70, 1200, 1, 0
		}},
		"the period alone, which is not recorded": {
			change:   func(d *v1alpha1.DesiredAlarms) { d.Rules[1].PeriodSeconds = 1200 },
			repaired: []string{"the cpu rule was restored"},
		},
		"another instance": {change: func(d *v1alpha1.DesiredAlarms) {
			d.Dimension = "rds_cluster_id:" + strings.Repeat("e", 32) + "in01"
		}},
		"another URL":                       {endpoint: "https://new.example.com/smn"},
		"metric disabled":                   {change: withoutMemory},
		"metric disabled, its rule renamed": {before: modifyRule(v1alpha1.MetricMemory, rename), change: withoutMemory},
		"metric disabled, its rule deleted": {before: deleteRule(v1alpha1.MetricMemory), change: withoutMemory},
		"metric disabled, the record lost":  {before: changesByOthers()["record lost"].do, change: withoutMemory},
		"metric disabled, its rule is copied": {
			before: func(w *world, ctx context.Context) error {
				rule, err := w.cloud.Rule(ctx, ruleID(w, v1alpha1.MetricMemory))
				d := w.desired()
				withoutMemory(&d)
				w.ensure(d)
				_, createErr := w.cloud.CreateRule(ctx, rule)
				return errors.Join(err, createErr)
			},
			change: withoutMemory,
		},
		"threshold, which others changed as well": {
			before: modifyRule(v1alpha1.MetricCPU, setThreshold),
			change: func(d *v1alpha1.DesiredAlarms) { d.Rules[1].ThresholdPercent = 80 },
		},
	}
	w := newWorld(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.reset()
			w.ensure(w.desired())
			w.sim.Confirm(w.recorded.SubscriptionURN)
			w.checkNothingToDo(w.desired())
			if tt.before != nil {
				if err := tt.before(w, t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			desired, before := w.desired(), w.recorded
			if tt.change != nil {
				tt.change(&desired)
			}
			if tt.endpoint != "" {
				w.restartWith(tt.endpoint)
			}
			if diff := cmp.Diff(tt.repaired, w.ensureWithSnapshot(desired)); diff != "" {
				t.Error(diff)
			}
			if len(w.writes()) == 0 && cmp.Equal(before, w.recorded) {
				t.Error("Ensure has changed nothing")
			}
			if rules := len(w.sim.Rules()); rules != len(desired.Rules) || len(w.recorded.Rules) != rules {
				t.Errorf("%d rules exist, recorded %+v", rules, w.recorded)
			}
			w.checkNothingToDo(desired)
		})
	}
}

// A snapshot has the states without a request. Ensure reads an object again before it creates or changes it.
func TestEnsureWithOldSnapshotChangesNothing(t *testing.T) {
	w := newWorld(t)
	if repaired := w.ensureWithSnapshot(w.desired()); len(repaired) > 0 {
		t.Errorf("the first run reports %q as repaired", repaired)
	}
	w.checkRecord()
	checkOld := func(what string, old *alarms.Snapshot) {
		t.Helper()
		w.sim.ResetRequests()
		if repaired := w.mustEnsure(w.desired(), old); len(repaired) > 0 || len(w.writes()) > 0 {
			t.Errorf("snapshot older than the %s: repaired %q, wrote %v", what, repaired, w.writes())
		}
	}
	none := alarms.NewSnapshot(alarms.Result[otc.Topic]{}, alarms.Result[otc.Subscription]{}, alarms.Result[otc.Rule]{})
	checkOld("rules", none)
	w.checkRecord()
	if err := w.cloud.UpdateTopic(t.Context(), w.recorded.TopicURN, "mine"); err != nil {
		t.Fatal(err)
	}
	old := w.snapshot()
	w.ensureWithSnapshot(w.desired())
	checkOld("display name", old)
	old = w.snapshot()
	w.sim.Confirm(w.recorded.SubscriptionURN)
	if err := w.sim.SetWorkload(w.instance, simcloud.Workload{CPUDemand: 2}); err != nil {
		t.Fatal(err)
	}
	w.advance(25 * time.Minute) // longer than three periods of the CPU rule
	w.ensureWithSnapshot(w.desired())
	cpu := w.recorded.Rules[1]
	if n := len(w.sim.Requests()); n != 0 || w.recorded.Subscription != v1alpha1.SubscriptionConfirmed ||
		cpu.State != v1alpha1.StateAlarm || cpu.StateTime.IsZero() {
		t.Errorf("%d requests, %+v", n, w.recorded)
	}
	checkOld("confirmation", old)
	if w.recorded.Subscription != v1alpha1.SubscriptionConfirmed {
		t.Errorf("snapshot older than the confirmation: %s", w.recorded.Subscription)
	}
	w.sim.Unsubscribe(w.recorded.SubscriptionURN)
	w.ensureWithSnapshot(w.desired())
	for _, r := range w.sim.Requests() {
		if r.Service != "smn" {
			t.Errorf("the rules were in order, but Ensure sent %s %s", r.Method, r.URI)
		}
	}
}

// A run whose record failed has replaced the rules itself. The next run must not report them as repaired.
func TestEnsureReportsNothingAfterItsRecordFailed(t *testing.T) {
	w := newWorld(t)
	other := w.desired()
	other.Dimension = "rds_cluster_id:" + strings.Repeat("e", 32) + "in01"
	failed := errors.New("the status cannot be written")
	for n := 1; n <= 6; n++ { // Ensure records the removal and the creation of each rule
		w.reset()
		w.ensure(w.desired())
		calls := 0
		_, _, err := w.ensureWith(t.Context(), w.alarms, other, w.recorded, nil, func(observed v1alpha1.Alarms) error {
			if calls++; calls == n {
				return failed
			}
			return w.record(observed)
		})
		if repaired := w.ensureWithSnapshot(other); !errors.Is(err, failed) || len(repaired) > 0 {
			t.Errorf("record %d: %v, then repaired %q", n, err, repaired)
		}
		w.checkRecord()
	}
}
