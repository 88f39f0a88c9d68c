// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

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
		"copied":  {func(w *world) { w.add(func(*otc.Rule) {}) }, []string{"DeleteAlarm"}, ""},
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
		"recommends only":   func(r *otc.Rule) { r.Description += " recommends only" },
		"all notifications": func(r *otc.Rule) { r.ActionEnabled, r.AlarmActions, r.OKActions, r.Count = false, nil, nil, 1 },
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

// odd is a cloud that accepts writes of the CPU rule and shows other values.
type odd struct {
	*otc.Cloud
	show func(*otc.Rule)
}

func (o *odd) shown(r otc.Rule) otc.Rule {
	if r.Metric == "rds001_cpu_util" {
		o.show(&r)
	}
	return r
}

func (o *odd) Rule(ctx context.Context, id string) (otc.Rule, error) {
	r, err := o.Cloud.Rule(ctx, id)
	return o.shown(r), err
}

func (o *odd) Rules(ctx context.Context, _ time.Time) ([]otc.Rule, error) {
	all, err := o.ListRules(ctx)
	for i := range all {
		all[i] = o.shown(all[i])
	}
	return all, err
}

func TestIneffectiveRepairIsReportedAndNotRepeatedAtOnce(t *testing.T) {
	w := newWorld(t)
	for name, tt := range map[string]struct {
		show      func(*otc.Rule)
		writes    int
		remaining string // empty if the rule does its job in spite of the difference
	}{
		"filter":              {func(r *otc.Rule) { r.Filter = "avg" }, 1, ""},
		"enabled, and filter": {func(r *otc.Rule) { r.Enabled, r.Filter = false, "avg" }, 2, "enabled, filter"},
		"description":         {func(r *otc.Rule) { r.Description = strings.ToUpper(r.Description) }, 1, "description"},
		"name":                {func(r *otc.Rule) { r.Name = strings.ToUpper(r.Name) }, 1, "name"},
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t)
			w.ensure(w.desired())
			cloud := &odd{w.cloud, tt.show}
			options := w.options
			options.Cloud = cloud
			w.alarms = alarms.New(options)
			check := func(when string, writes int, want ...v1alpha1.Metric) {
				t.Helper()
				restored, err := w.try(w.desired())
				if tt.remaining == "" && err != nil || tt.remaining != "" && (err == nil || err.Error() !=
					"the cpu rule was written, and Cloud Eye still shows different values: "+tt.remaining) {
					t.Errorf("%s: %v", when, err)
				}
				if len(w.writes()) != writes || !cmp.Equal(want, restored) || len(w.recorded.Rules) != 3 {
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
			memory := w.rule(v1alpha1.MetricMemory)
			memory.Count = 1
			w.must(w.cloud.ModifyRule(t.Context(), memory.ID, memory))
			check("after another change", 1, v1alpha1.MetricMemory)
			cloud.show = func(*otc.Rule) {}
			w.checkInOrder(w.desired())
			cloud.show = tt.show
			check("the same difference again", tt.writes)
		})
	}
}
