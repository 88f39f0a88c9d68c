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
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

func TestMarkIsParsedAndFitsIntoADescription(t *testing.T) {
	long := strings.Repeat("n", 63)
	for mark, want := range map[alarms.Mark]string{
		{Namespace: "shop", Name: "orders", Cluster: clusterID}:                   ourMark,
		{Namespace: "shop", Name: "orders", Cluster: clusterID, Recommends: true}: ourMark + " recommends only",
		{Namespace: long, Name: strings.Repeat("a", 97), Cluster: clusterID, Recommends: true}: "rds-autopilot " + long + "/" +
			strings.Repeat("a", 97) + " cluster " + clusterID + " recommends only",
		{Namespace: "cluster", Name: "recommends.only", Cluster: "c1"}: "rds-autopilot cluster/recommends.only cluster c1",
	} {
		got := mark.String()
		if got != want || len(got) > 256 {
			t.Errorf("String\n got %s (%d)\nwant %s", got, len(got), want)
		}
		if parsed, ok := alarms.ParseMark(got); !ok || parsed != mark {
			t.Errorf("ParseMark(%q) = %+v, %t", got, parsed, ok)
		}
	}
	for _, text := range unreadableMarks() {
		if mark, ok := alarms.ParseMark(text); ok {
			t.Errorf("ParseMark(%q) = %+v", text, mark)
		}
	}
}

// unreadableMarks returns descriptions that resemble a mark.
func unreadableMarks() []string {
	return []string{
		"", "rds-autopilot", "rds-autopilot shop/orders", "rds-autopilot shop/orders cluster ", "rds-autopilot shop cluster c1",
		"rds-autopilot /orders cluster c1", "rds-autopilot shop/ cluster c1", ourMark + " and more", " " + ourMark, ourMark + " ",
		"rds-autopilot shop/a/b cluster c1", "my " + ourMark, strings.ToUpper(ourMark), ourMark + " recommends only.",
		ourMark + " recommends only recommends only", "rds-autopilot  shop/orders cluster c1", "rds-autopilot shop/orders cluster c/1",
	}
}

func TestRuleNameHasAtMost100CharactersAndKeepsTheHash(t *testing.T) {
	long, longer := strings.Repeat("n", 63), strings.Repeat("a", 253)
	seen := map[string]bool{}
	for _, tt := range []struct{ cluster, namespace, name, shownNamespace, shownName string }{
		{clusterID, "shop", "orders", "shop", "orders"},
		{otherClusterID, "shop", "orders", "shop", "orders"},
		{clusterID, "shop", "orders.v1", "shop", "orders-v1"},
		{clusterID, "shop", "orders_v1", "shop", "orders-v1"},
		{clusterID, "shop", longer, "shop", longer[:68]},
		{clusterID, long, longer[:20], long[:52], longer[:20]},
		{clusterID, long, longer, long[:36], longer[:36]},
	} {
		mark := alarms.Mark{Cluster: tt.cluster, Namespace: tt.namespace, Name: tt.name}
		recommends := mark
		recommends.Recommends = true
		got := mark.RuleName(v1alpha1.MetricStorage)
		hash := got[len(got)-len("12345678_storage") : len(got)-len("_storage")]
		want := "autopilot_" + tt.shownNamespace + "_" + tt.shownName + "_" + hash + "_storage"
		if got != want || len(got) > 100 || recommends.RuleName(v1alpha1.MetricStorage) != got {
			t.Errorf("RuleName\n got %s (%d)\nwant %s", got, len(got), want)
		}
		if seen[hash] || strings.Trim(hash, "0123456789abcdef") != "" {
			t.Errorf("%+v has the hash %s, which is another one's or no hash", mark, hash)
		}
		seen[hash] = true
		namespace, name, ok := alarms.ParseRuleName(got)
		if !ok || namespace != tt.shownNamespace || name != tt.shownName {
			t.Errorf("ParseRuleName(%s) = %s, %s, %t", got, namespace, name, ok)
		}
	}
	for _, text := range []string{
		"", "autopilot_shop_orders_12345678", "autopilot_shop_orders_12345678_", "autopilot__orders_12345678_cpu",
		"autopilot_shop_orders_1234567_cpu", "autopilot_shop_orders_12345678_cpu_2", "shop_orders_12345678_cpu",
	} {
		if _, _, ok := alarms.ParseRuleName(text); ok {
			t.Errorf("ParseRuleName accepts %q", text)
		}
	}
}

// FuzzMark checks that a text is a mark only if it is exactly what its mark writes, and that the parts in a name of a
// rule are separated as RuleName separates them.
func FuzzMark(f *testing.F) {
	for _, text := range unreadableMarks() {
		f.Add(text)
	}
	f.Add(ourMark)
	f.Add(ourMark + " recommends only")
	f.Add("autopilot_shop_orders_12345678_storage")
	f.Fuzz(func(t *testing.T, text string) {
		if mark, ok := alarms.ParseMark(text); ok {
			name := mark.RuleName(v1alpha1.MetricStorage)
			if _, _, ok := alarms.ParseRuleName(name); mark.String() != text || !ok || len(name) > 100 {
				t.Errorf("%q is parsed as %+v, whose text is %q and whose rule is %q", text, mark, mark, name)
			}
		}
		if namespace, name, ok := alarms.ParseRuleName(text); ok {
			if !strings.HasPrefix(text, "autopilot_"+namespace+"_"+name+"_") || strings.Contains(namespace+name, "_") ||
				namespace == "" || name == "" {
				t.Errorf("ParseRuleName(%q) = %q, %q", text, namespace, name)
			}
		}
	})
}

func TestClaim(t *testing.T) {
	const node = "0123456789abcdef0123456789abcdefno01"
	orders := alarms.Mark{Namespace: "shop", Name: "orders", Cluster: clusterID}
	smaller := alarms.Mark{Namespace: "shop", Name: "orderr", Cluster: clusterID}
	larger := alarms.Mark{Namespace: "shop", Name: "orderz", Cluster: clusterID}
	elsewhere := alarms.Mark{Namespace: "shop", Name: "orders", Cluster: otherClusterID}
	recommends := func(m alarms.Mark) alarms.Mark { m.Recommends = true; return m }
	gone := alarms.Mark{Namespace: "shop", Name: "gone", Cluster: clusterID}
	cut := func(r *otc.Rule) { r.Description = r.Description[:20] }
	w := newWorld(t)
	w.gone = map[string]bool{"shop/gone": true}
	for name, tt := range map[string]struct {
		rules   []alarms.Mark // oldest first
		change  func(*otc.Rule)
		by      *alarms.Mark // nil and not own: nobody
		cluster string
		own     bool
	}{
		"none":                       {},
		"own":                        {rules: []alarms.Mark{orders, orders}, own: true},
		"own, cut":                   {rules: []alarms.Mark{orders}, change: cut, own: true},
		"another one's":              {rules: []alarms.Mark{larger}, by: &larger},
		"another one's, cut":         {rules: []alarms.Mark{larger}, change: cut, by: &larger},
		"own, and of a larger mark":  {rules: []alarms.Mark{larger, orders}, own: true},
		"own, and of a smaller mark": {rules: []alarms.Mark{smaller, orders}, by: &smaller},
		"the same, cut":              {rules: []alarms.Mark{smaller, orders}, change: cut, by: &smaller},
		"of another cluster":         {rules: []alarms.Mark{elsewhere}, by: &elsewhere, cluster: otherClusterID},
		"of another cluster, cut":    {rules: []alarms.Mark{elsewhere}, change: cut, by: &elsewhere},
		"of two clusters":            {rules: []alarms.Mark{elsewhere, smaller}, by: &smaller},
		"others only recommend":      {rules: []alarms.Mark{recommends(smaller), recommends(elsewhere)}},
		"own only recommends, another one's": {
			rules: []alarms.Mark{recommends(orders), larger}, by: &larger,
		},
		"of an object that is gone":      {rules: []alarms.Mark{gone}},
		"of an object that is gone, cut": {rules: []alarms.Mark{gone}, change: cut},
		"own, and of one that is gone":   {rules: []alarms.Mark{gone, orders}, own: true},
		"of a node": {
			rules: []alarms.Mark{smaller}, by: &smaller,
			change: func(r *otc.Rule) { r.Dimension, r.DimensionValue = "rds_instance_id", node },
		},
		"of another instance":  {rules: []alarms.Mark{smaller}, change: func(r *otc.Rule) { r.DimensionValue = "x" + r.DimensionValue }},
		"of another service":   {rules: []alarms.Mark{smaller}, change: func(r *otc.Rule) { r.Namespace = "SYS.DDS" }},
		"a copy by a person":   {rules: []alarms.Mark{smaller}, change: func(r *otc.Rule) { r.Name = "my-disk" }},
		"a copy, numbered":     {rules: []alarms.Mark{smaller}, change: func(r *otc.Rule) { r.Name += "2" }},
		"with another's mark":  {rules: []alarms.Mark{larger}, change: func(r *otc.Rule) { r.Description = ourMark }, by: &larger},
		"own, another's mark":  {rules: []alarms.Mark{orders}, change: func(r *otc.Rule) { r.Description = smaller.String() }, own: true},
		"with a longer text":   {rules: []alarms.Mark{smaller}, change: func(r *otc.Rule) { r.Description += "!" + r.Description }, by: &smaller},
		"recommends, by a cut": {rules: []alarms.Mark{recommends(smaller)}, change: cut, by: &smaller},
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t)
			for _, m := range tt.rules {
				r := otc.Rule{
					Name: m.RuleName(v1alpha1.MetricCPU), Description: m.String(), Namespace: "SYS.RDS", Metric: "rds001_cpu_util",
					Dimension: "rds_cluster_id", DimensionValue: w.instance, Period: 300, Count: 1, Filter: "average",
					Comparison: ">=", Threshold: 90, Enabled: true,
				}
				if tt.change != nil {
					tt.change(&r)
				}
				_, err := w.cloud.CreateRule(t.Context(), r)
				w.must(err)
			}
			want := v1alpha1.Claim{Holds: tt.own}
			if tt.by != nil {
				name := tt.by.RuleName(v1alpha1.MetricCPU)
				i := slices.IndexFunc(w.sim.Rules(), func(r simcloud.Rule) bool { return r.Name == name })
				want = v1alpha1.Claim{By: tt.by.Namespace + "/" + tt.by.Name, Cluster: tt.cluster, Rule: name + " (" + w.sim.Rules()[i].ID + ")"}
			}
			got, err := w.alarms.Claim(t.Context(), "shop", "orders", []string{w.instance, node}, w.clock())
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
	w.t = t
	w.refuse("ListAlarms")
	claim, err := w.alarms.Claim(t.Context(), "shop", "orders", []string{w.instance}, w.clock())
	if err == nil || !strings.Contains(err.Error(), "Not today") || claim != (v1alpha1.Claim{}) {
		t.Errorf("without a list: %+v, %v", claim, err)
	}
}

// addStrangers creates rules that resemble those of shop/orders, and returns all rules of strangers.
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
		base + "_cpu2", base + "_CPU", base, "x" + base + "_cpu", base[1:] + "_cpu", "autopilot_shop_orders_12345678_cpu",
	} {
		add(name, ourMark)
	}
	add("orders", "")
	for _, mark := range unreadableMarks() { // our name
		add(ours.Name, mark)
	}
	for _, m := range []alarms.Mark{
		{Cluster: otherClusterID, Namespace: "shop", Name: "orders"}, {Cluster: clusterID, Namespace: "shop2", Name: "orders"},
		{Cluster: clusterID, Namespace: "shop", Name: "orders2"}, {Cluster: clusterID, Namespace: "shop", Name: "order"},
		{Cluster: clusterID, Namespace: "orders", Name: "shop"}, {Cluster: clusterID + "0", Namespace: "shop", Name: "orders"},
	} {
		add(ours.Name, m.String()) // of another one, under our name
		add(m.RuleName(v1alpha1.MetricCPU), m.String())
	}
	ids := []string{}
	for _, r := range w.recorded.Rules {
		ids = append(ids, r.AlarmID)
	}
	return slices.DeleteFunc(w.sim.Rules(), func(r simcloud.Rule) bool { return slices.Contains(ids, r.ID) })
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
	w.recorded.Rules[1].AlarmID = strangers[slices.IndexFunc(strangers, func(r simcloud.Rule) bool { return r.Name == "orders" })].ID
	if restored := w.ensure(w.desired()); restored != "" || len(w.writes()) > 0 {
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

func TestMarkedNamesEachObjectOfThisCluster(t *testing.T) {
	w := newWorld(t)
	w.addStrangers()
	var marked []string
	add := func(namespace, name string) { marked = append(marked, fmt.Sprintf("%s/%s", namespace, name)) }
	w.must(w.alarms.Marked(t.Context(), w.clock(), add))
	marked = slices.Compact(slices.Sorted(slices.Values(marked)))
	if diff := cmp.Diff([]string{"orders/shop", "shop/order", "shop/orders", "shop/orders2", "shop2/orders"}, marked); diff != "" {
		t.Error(diff)
	}
	w.refuse("ListAlarms")
	if err := w.alarms.Marked(t.Context(), w.clock(), add); err == nil || !strings.Contains(err.Error(), "Not today") {
		t.Errorf("without a list: %v", err)
	}
}
