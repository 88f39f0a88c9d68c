// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// drift is something that somebody does to what is armed, and what follows.
type drift struct {
	do       func(*world, context.Context) error
	writes   []string
	repaired []string
	listing  bool // seen only with a listing
}

func ruleID(w *world, metric v1alpha1.Metric) string {
	for _, r := range w.recorded.Rules {
		if r.Metric == metric {
			return r.AlarmID
		}
	}
	return ""
}

// modified is the rule of the CPU, changed by hand.
func modified(change func(*otc.Rule)) func(*world, context.Context) error {
	return func(w *world, ctx context.Context) error {
		r, err := w.cloud.Rule(ctx, ruleID(w, v1alpha1.MetricCPU))
		if err != nil {
			return err
		}
		change(&r)
		return w.cloud.ModifyRule(ctx, r.ID, r)
	}
}

// copied is a copy of the rule of a metric, changed by hand.
func copied(metric v1alpha1.Metric, change func(*otc.Rule)) func(*world, context.Context) error {
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

func drifts() map[string]drift {
	update := []string{"UpdateAlarm"}
	return map[string]drift{
		"threshold": {do: modified(func(r *otc.Rule) { r.Threshold = 99.5 }), writes: update,
			repaired: []string{"the cpu rule was restored: threshold"}},
		"period": {do: modified(func(r *otc.Rule) { r.Period = 3600 }), writes: update,
			repaired: []string{"the cpu rule was restored: period"}},
		"count": {do: modified(func(r *otc.Rule) { r.Count = 1 }), writes: update,
			repaired: []string{"the cpu rule was restored: count"}},
		"repeat": {do: modified(func(r *otc.Rule) { r.Repeat = 0 }), writes: update,
			repaired: []string{"the cpu rule was restored: repeat"}},
		"comparison": {do: modified(func(r *otc.Rule) { r.Comparison = "<" }), writes: update,
			repaired: []string{"the cpu rule was restored: comparison"}},
		"filter": {do: modified(func(r *otc.Rule) { r.Filter = "min" }), writes: update,
			repaired: []string{"the cpu rule was restored: filter"}},
		"description": {do: modified(func(r *otc.Rule) { r.Description = "mine" }), writes: update,
			repaired: []string{"the cpu rule was restored: description"}},
		"name": {do: modified(func(r *otc.Rule) { r.Name = "renamed" }), writes: update,
			repaired: []string{"the cpu rule was restored: name"}},
		"actions off": {do: modified(func(r *otc.Rule) { r.ActionEnabled = false }), writes: update,
			repaired: []string{"the cpu rule was restored: topic to notify"}},
		"another topic": {
			do: modified(func(r *otc.Rule) {
				other := []string{r.AlarmActions[0] + "-other"}
				r.AlarmActions, r.OKActions = other, other
			}),
			writes: update, repaired: []string{"the cpu rule was restored: topic to notify"},
		},
		"disabled": {
			do: func(w *world, ctx context.Context) error {
				return w.cloud.EnableRule(ctx, ruleID(w, v1alpha1.MetricMemory), false)
			},
			writes: []string{"SwitchAlarm"}, repaired: []string{"the memory rule was restored: enabled"},
		},
		"deleted": {
			do: func(w *world, ctx context.Context) error {
				return w.cloud.DeleteRule(ctx, ruleID(w, v1alpha1.MetricStorage))
			},
			writes: []string{"CreateAlarm"}, repaired: []string{"the storage rule was gone: created again"},
		},
		"twice": {
			do: copied(v1alpha1.MetricMemory, func(*otc.Rule) {}), writes: []string{"DeleteAlarm"},
			repaired: []string{"superfluous memory rules were removed: 1"},
		},
		"twice for another instance": {
			do: copied(v1alpha1.MetricMemory, func(r *otc.Rule) { r.DimensionValue = "other" }), writes: []string{"DeleteAlarm"},
			repaired: []string{"superfluous memory rules were removed: 1"},
		},
		"three times": {
			do: func(w *world, ctx context.Context) error {
				return errors.Join(copied(v1alpha1.MetricCPU, func(*otc.Rule) {})(w, ctx), copied(v1alpha1.MetricCPU, func(*otc.Rule) {})(w, ctx))
			},
			writes: []string{"DeleteAlarm", "DeleteAlarm"}, repaired: []string{"superfluous cpu rules were removed: 2"},
		},
		"deleted and made by hand": {
			do: func(w *world, ctx context.Context) error {
				return errors.Join(copied(v1alpha1.MetricCPU, func(*otc.Rule) {})(w, ctx), w.cloud.DeleteRule(ctx, ruleID(w, v1alpha1.MetricCPU)))
			},
			repaired: []string{"the cpu rule was gone: another one of its name is kept"},
		},
		"watches another instance, the recorded one gone": {
			do: func(w *world, ctx context.Context) error {
				err := copied(v1alpha1.MetricCPU, func(r *otc.Rule) { r.DimensionValue = "other" })(w, ctx)
				return errors.Join(err, w.cloud.DeleteRule(ctx, ruleID(w, v1alpha1.MetricCPU)))
			},
			writes:   []string{"DeleteAlarm", "CreateAlarm"},
			repaired: []string{"superfluous cpu rules were removed: 1", "the cpu rule was gone: created again"},
		},
		"the topic deleted": {
			do:     func(w *world, ctx context.Context) error { return w.cloud.DeleteTopic(ctx, w.recorded.TopicURN) },
			writes: []string{"CreateTopic", "Subscribe"}, repaired: []string{"the topic was gone: created again"},
		},
		"the topic's display name": {
			do: func(w *world, ctx context.Context) error {
				return w.cloud.UpdateTopic(ctx, w.recorded.TopicURN, "mine")
			},
			writes: []string{"UpdateTopic"}, repaired: []string{"the topic's display name was changed: written again"}, listing: true,
		},
		"the subscription deleted": {
			do:     func(w *world, ctx context.Context) error { return w.cloud.Unsubscribe(ctx, w.recorded.SubscriptionURN) },
			writes: []string{"Subscribe"}, repaired: []string{"the subscription was gone: requested again"},
		},
		"the subscription canceled by its link": {
			do:     func(w *world, _ context.Context) error { w.sim.Unsubscribe(w.recorded.SubscriptionURN); return nil },
			writes: []string{"Subscribe"}, repaired: []string{"the subscription was canceled: requested again"},
		},
		"the record lost": {
			do:     func(w *world, _ context.Context) error { w.recorded = v1alpha1.Alarms{}; return nil },
			writes: []string{"CreateTopic"},
		},
	}
}

func TestEnsureRepairsChangesByOthers(t *testing.T) {
	w := newWorld(t)
	for name, tt := range drifts() {
		for _, listing := range []bool{false, true} {
			if tt.listing && !listing {
				continue
			}
			t.Run(fmt.Sprintf("%s, listing %v", name, listing), func(t *testing.T) {
				w.t = t
				w.reset()
				w.ensure(w.want())
				whole := w.shown()
				if err := tt.do(w, t.Context()); err != nil {
					t.Fatal(err)
				}
				ensure := w.ensure
				if listing {
					ensure = w.sweep
				}
				w.sim.ResetRequests()
				repaired := ensure(w.want())
				if diff := cmp.Diff(tt.writes, w.writes()); diff != "" {
					t.Errorf("writes:\n%s", diff)
				}
				if diff := cmp.Diff(tt.repaired, repaired); diff != "" {
					t.Errorf("repaired:\n%s", diff)
				}
				if diff := cmp.Diff(whole, w.shown()); diff != "" {
					t.Error(diff)
				}
				w.checkRecord()
				w.checkQuiet(w.want())
			})
		}
	}
}

// What we want to be different is no mischief of others.
func TestEnsureDoesNotReportPolicyChangesAsRepaired(t *testing.T) {
	tests := map[string]struct {
		change   func(*v1alpha1.DesiredAlarms)
		endpoint string
		repaired []string
	}{
		"growth": {change: func(w *v1alpha1.DesiredAlarms) { w.Rules[0].ThresholdPercent = 80 }},
		"a new policy": {change: func(w *v1alpha1.DesiredAlarms) {
			r := &w.Rules[1]
			r.ThresholdPercent, r.PeriodSeconds, r.Count, r.RepeatSeconds = 70, 1200, 1, 0
		}},
		"the period alone, which is in no record": {
			change:   func(w *v1alpha1.DesiredAlarms) { w.Rules[1].PeriodSeconds = 1200 },
			repaired: []string{"the cpu rule was restored: period"},
		},
		"another instance": {change: func(w *v1alpha1.DesiredAlarms) {
			w.Dimension = "rds_cluster_id:" + strings.Repeat("e", 32) + "in01"
		}},
		"a metric disabled": {change: func(w *v1alpha1.DesiredAlarms) { w.Rules = w.Rules[:2] }},
		"another URL":       {change: func(*v1alpha1.DesiredAlarms) {}, endpoint: "https://new.example.com/smn"},
	}
	w := newWorld(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.reset()
			w.ensure(w.want())
			w.sim.Confirm(w.recorded.SubscriptionURN)
			w.checkQuiet(w.want())
			want := w.want()
			tt.change(&want)
			if tt.endpoint != "" {
				w.restartWith(tt.endpoint)
			}
			if diff := cmp.Diff(tt.repaired, w.sweep(want)); diff != "" {
				t.Error(diff)
			}
			if len(w.writes()) == 0 {
				t.Error("nothing was done")
			}
			w.checkQuiet(want)
		})
	}
	t.Run("a threshold that was changed by hand, and then by us", func(t *testing.T) {
		w.t = t
		w.reset()
		w.ensure(w.want())
		if err := drifts()["threshold"].do(w, t.Context()); err != nil {
			t.Fatal(err)
		}
		want := w.want()
		want.Rules[1].ThresholdPercent = 80
		if diff := cmp.Diff([]string{"the cpu rule was restored: threshold"}, w.sweep(want)); diff != "" {
			t.Error(diff)
		}
	})
	for what, do := range map[string]func(id string) error{
		"renamed": func(id string) error {
			r, err := w.cloud.Rule(t.Context(), id)
			r.Name = "renamed"
			return errors.Join(err, w.cloud.ModifyRule(t.Context(), id, r))
		},
		"deleted": func(id string) error { return w.cloud.DeleteRule(t.Context(), id) },
	} {
		t.Run("a metric disabled whose rule somebody has "+what, func(t *testing.T) {
			w.t = t
			w.reset()
			w.ensure(w.want())
			if err := do(ruleID(w, v1alpha1.MetricMemory)); err != nil {
				t.Fatal(err)
			}
			want := w.want()
			want.Rules = want.Rules[:2]
			if repaired := w.sweep(want); len(repaired) > 0 || len(w.recorded.Rules) != 2 || len(w.sim.Rules()) != 2 {
				t.Errorf("%q, %+v", repaired, w.recorded)
			}
			w.checkQuiet(want)
		})
	}
	t.Run("a metric disabled and the record lost", func(t *testing.T) {
		w.t = t
		w.reset()
		w.ensure(w.want())
		w.recorded = v1alpha1.Alarms{}
		want := w.want()
		want.Rules = want.Rules[:2]
		if repaired := w.sweep(want); len(repaired) > 0 {
			t.Errorf("%q", repaired)
		}
		w.checkQuiet(want)
	})
	t.Run("a metric that is not wanted gets a rule", func(t *testing.T) {
		w.t = t
		w.reset()
		w.ensure(w.want())
		rule, err := w.cloud.Rule(t.Context(), ruleID(w, v1alpha1.MetricMemory))
		if err != nil {
			t.Fatal(err)
		}
		want := w.want()
		want.Rules = want.Rules[:2]
		w.ensure(want)
		if _, err := w.cloud.CreateRule(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"superfluous memory rules were removed: 1"}, w.sweep(want)); diff != "" {
			t.Error(diff)
		}
		w.checkQuiet(want)
	})
}

// A listing gives the states without a call, and what it does not show is looked for before it is made.
func TestEnsureWithSnapshotSendsNoRequestWhenInOrder(t *testing.T) {
	w := newWorld(t)
	if repaired := w.sweep(w.want()); len(repaired) > 0 {
		t.Errorf("armed for the first time: %q", repaired)
	}
	w.checkRecord()
	old := alarms.NewSnapshot(alarms.Result[otc.Topic]{}, alarms.Result[otc.Subscription]{}, alarms.Result[otc.Rule]{})
	w.sim.ResetRequests()
	if _, repaired, err := w.ensureWith(t.Context(), w.alarms, w.want(), w.recorded, old, w.record); err != nil || len(repaired) > 0 || len(w.writes()) > 0 {
		t.Errorf("a listing older than the rules: %v, %q, %v", err, repaired, w.writes())
	}
	w.checkRecord()
	if err := w.cloud.UpdateTopic(t.Context(), w.recorded.TopicURN, "mine"); err != nil {
		t.Fatal(err)
	}
	old = w.listing()
	w.sweep(w.want())
	w.sim.ResetRequests()
	if _, repaired, err := w.ensureWith(t.Context(), w.alarms, w.want(), w.recorded, old, w.record); err != nil || len(repaired) > 0 || len(w.writes()) > 0 {
		t.Errorf("a listing older than the display name: %v, %q, %v", err, repaired, w.writes())
	}
	old = w.listing()
	w.sim.Confirm(w.recorded.SubscriptionURN)
	if err := w.sim.SetRuleState(ruleID(w, v1alpha1.MetricCPU), simcloud.StateAlarm); err != nil {
		t.Fatal(err)
	}
	w.sweep(w.want())
	if n := len(w.sim.Requests()); n != 0 || w.recorded.Subscription != v1alpha1.SubscriptionConfirmed || w.recorded.Rules[1].State != "alarm" || w.recorded.Rules[1].StateTime.IsZero() {
		t.Errorf("%d requests, %+v", n, w.recorded)
	}
	if _, repaired, err := w.ensureWith(t.Context(), w.alarms, w.want(), w.recorded, old, w.record); err != nil || len(repaired) > 0 || w.recorded.Subscription != v1alpha1.SubscriptionConfirmed {
		t.Errorf("a listing older than the confirmation: %v, %q, %s", err, repaired, w.recorded.Subscription)
	}
	w.sim.Unsubscribe(w.recorded.SubscriptionURN)
	w.sweep(w.want())
	for _, r := range w.sim.Requests() {
		if r.Service != "smn" {
			t.Errorf("the rules were in order, and asked for: %s %s", r.Method, r.URI)
		}
	}
}

// Somebody takes the confirmation back by asking for it again at the console.
func TestEnsureReportsSubscriptionNoLongerConfirmed(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	w.sim.Confirm(w.recorded.SubscriptionURN)
	w.sweep(w.want())
	w.advance(2 * askAgain)
	w.sim.Unsubscribe(w.recorded.SubscriptionURN)
	if _, err := w.cloud.Subscribe(t.Context(), w.recorded.TopicURN, "https", ourURL, ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"the subscription was no longer confirmed: requested again"}, w.sweep(w.want())); diff != "" {
		t.Error(diff)
	}
	w.checkQuiet(w.want())
}
