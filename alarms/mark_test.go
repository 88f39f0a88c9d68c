// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
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

func TestParseMarkRejectsOtherTexts(t *testing.T) {
	for _, text := range unreadableMarks() {
		if mark, ok := alarms.ParseMark(text); ok || mark != (alarms.Mark{}) {
			t.Errorf("ParseMark(%q) = %+v, %t", text, mark, ok)
		}
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
		{clusterID, "shop", "Bücher", "shop", "B-cher"},
		{clusterID, "shop", longer, "shop", longer[:68]},
		{clusterID, long, "orders", long, "orders"},
		{clusterID, long, longer[:20], long[:52], longer[:20]},
		{clusterID, long, longer, long[:36], longer[:36]},
		{clusterID, long, longer[1:], long[:36], longer[:36]},
	} {
		mark := alarms.Mark{Cluster: tt.cluster, Namespace: tt.namespace, Name: tt.name}
		got := mark.RuleName(v1alpha1.MetricStorage)
		hash := got[len(got)-len("12345678_storage") : len(got)-len("_storage")]
		if want := "autopilot_" + tt.shownNamespace + "_" + tt.shownName + "_" + hash + "_storage"; got != want || len(got) > 100 {
			t.Errorf("RuleName\n got %s (%d)\nwant %s", got, len(got), want)
		}
		if seen[hash] || strings.Trim(hash, "0123456789abcdef") != "" {
			t.Errorf("%+v has the hash %s, which is another one's or no hash", mark, hash)
		}
		seen[hash] = true
		mark.Recommends = true
		if again := mark.RuleName(v1alpha1.MetricStorage); again != got {
			t.Errorf("the rule of an object that only recommends is named %s, not %s", again, got)
		}
		namespace, name, ok := alarms.ParseRuleName(got)
		if !ok || namespace != tt.shownNamespace || name != tt.shownName {
			t.Errorf("ParseRuleName(%s) = %s, %s, %t", got, namespace, name, ok)
		}
	}
	for _, text := range []string{
		"", "autopilot_", "autopilot_shop_orders_12345678", "autopilot_shop_orders_12345678_", "autopilot__orders_12345678_cpu",
		"autopilot_shop__12345678_cpu", "autopilot_shop_orders_1234567_cpu", "autopilot_shop_orders_12345678_cpu_2",
		"my_autopilot_shop_orders_12345678_cpu", "shop_orders_12345678_cpu",
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
