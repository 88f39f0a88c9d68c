// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// addStrangers creates 55 rules that resemble those of shop/orders, and returns all rules of strangers.
func (w *world) addStrangers() []simcloud.Rule {
	w.t.Helper()
	w.reset(w.t)
	w.ensure(w.desired())
	ours := w.rule(v1alpha1.MetricCPU)
	base := strings.TrimSuffix(ours.Name, "_cpu")
	add := func(name, description string) {
		r := ours
		r.Name, r.Description = name, description
		_, err := w.cloud.CreateRule(w.t.Context(), r)
		w.must(err)
	}
	for _, name := range []string{ // copied mark, other name
		base + "_cpu2", base + "_disk", base + "_CPU", base, base + "_", base + "_cpu_", "x" + base + "_cpu", base[1:] + "_cpu",
		"autopilot_shop_orders_cpu", "autopilot_shop_orders_12345678_cpu", "orders", strings.ToUpper(ours.Name),
	} {
		add(name, ourMark)
		add(name, "")
	}
	for _, mark := range unreadableMarks() { // our name
		add(ours.Name, mark)
	}
	for _, m := range []alarms.Mark{
		{Cluster: otherClusterID, Namespace: "shop", Name: "orders"}, {Cluster: clusterID, Namespace: "shop2", Name: "orders"},
		{Cluster: clusterID, Namespace: "shop", Name: "orders2"}, {Cluster: clusterID, Namespace: "shop", Name: "order"},
		{Cluster: clusterID, Namespace: "orders", Name: "shop"}, {Cluster: clusterID + "0", Namespace: "shop", Name: "orders"},
		{Cluster: "shop", Namespace: clusterID, Name: "orders"},
	} {
		add(ours.Name, m.String()) // of another one, under our name
		add(m.RuleName(v1alpha1.MetricCPU), m.String())
	}
	ids := []string{}
	for _, r := range w.recorded.Rules {
		ids = append(ids, r.AlarmID)
	}
	strangers := slices.DeleteFunc(w.sim.Rules(), func(r simcloud.Rule) bool { return slices.Contains(ids, r.ID) })
	if len(strangers) != 55 {
		w.t.Fatalf("%d rules of strangers", len(strangers))
	}
	return strangers
}

func allow(context.Context) error { return nil }

func TestRemoveDeletesTheRulesOfTheObjectAndNoOther(t *testing.T) {
	w := newWorld(t)
	for _, recommends := range []bool{false, true} {
		strangers := w.addStrangers()
		desired := w.desired()
		desired.Recommends = recommends
		w.ensure(desired)
		confirmed := 0
		w.sim.ResetRequests()
		removed, err := w.alarms.Remove(t.Context(), "shop", "orders", w.clock(), func(context.Context) error {
			if confirmed++; len(w.writes()) > 0 {
				t.Errorf("%v before the confirmation", w.writes())
			}
			return nil
		})
		if removed != 3 || err != nil || confirmed != 1 {
			t.Errorf("removed %d, confirmed %d times, %v", removed, confirmed, err)
		}
		removed, err = w.alarms.Remove(t.Context(), "shop", "orders", w.clock(), func(context.Context) error {
			t.Error("asked for a confirmation, although there is nothing to remove")
			return nil
		})
		if removed != 0 || err != nil {
			t.Errorf("the second time: removed %d, %v", removed, err)
		}
		if diff := cmp.Diff(strangers, w.sim.Rules()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestEnsureLeavesStrangers(t *testing.T) {
	w := newWorld(t)
	strangers := w.addStrangers()
	w.recorded.Rules[1].AlarmID = strangers[slices.IndexFunc(strangers, func(r simcloud.Rule) bool { return r.Description == "" })].ID
	if restored := w.ensure(w.desired()); restored != "cpu" || len(w.writes()) > 0 {
		t.Errorf("restored %q, wrote %v", restored, w.writes())
	}
	none := w.desired()
	none.Rules = nil
	w.ensure(none)
	if diff := cmp.Diff(strangers, w.sim.Rules()); diff != "" {
		t.Error(diff)
	}
}

func TestRemoveStopsAtAnError(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	unwanted := errors.New("the object is on")
	removed, err := w.alarms.Remove(t.Context(), "shop", "orders", w.clock(), func(context.Context) error { return unwanted })
	if removed != 0 || !errors.Is(err, unwanted) || len(w.sim.Rules()) != 3 {
		t.Errorf("removed %d, %v", removed, err)
	}
	for _, operation := range []string{"ListAlarms", "DeleteAlarm"} {
		w.refuse(operation)
		removed, err = w.alarms.Remove(t.Context(), "shop", "orders", w.clock(), allow)
		if removed != 0 || err == nil || !strings.Contains(err.Error(), "Not today") || len(w.sim.Rules()) != 3 {
			t.Errorf("without %s: removed %d, %v", operation, removed, err)
		}
	}
	w.refuse()
	w.stale, err = w.cloud.ListRules(t.Context())
	w.must(err)
	w.sim.RemoveRule(w.recorded.Rules[0].AlarmID) // after it was listed
	w.advance(1)
	removed, err = w.alarms.Remove(t.Context(), "shop", "orders", w.clock().Add(-1), allow)
	if removed != 3 || err != nil || len(w.sim.Rules()) != 0 {
		t.Errorf("a rule that is gone: removed %d, %v", removed, err)
	}
}

func TestMarkedNamesEachObjectOfThisClusterOnce(t *testing.T) {
	w := newWorld(t)
	w.addStrangers()
	var marked []string
	add := func(namespace, name string) { marked = append(marked, fmt.Sprintf("%s/%s", namespace, name)) }
	w.must(w.alarms.Marked(t.Context(), w.clock(), add))
	slices.Sort(marked)
	if diff := cmp.Diff([]string{"orders/shop", "shop/order", "shop/orders", "shop/orders2", "shop2/orders"}, marked); diff != "" {
		t.Error(diff)
	}
	w.refuse("ListAlarms")
	if err := w.alarms.Marked(t.Context(), w.clock(), add); err == nil || !strings.Contains(err.Error(), "Not today") {
		t.Errorf("without a list: %v", err)
	}
}
