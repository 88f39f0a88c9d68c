// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestClaim(t *testing.T) {
	const node = "0123456789abcdef0123456789abcdefno01"
	orders := alarms.Mark{Namespace: "shop", Name: "orders", Cluster: clusterID}
	smaller := alarms.Mark{Namespace: "shop", Name: "orderr", Cluster: clusterID}
	larger := alarms.Mark{Namespace: "shop", Name: "orderz", Cluster: clusterID}
	elsewhere := alarms.Mark{Namespace: "shop", Name: "orders", Cluster: otherClusterID}
	recommends := func(m alarms.Mark) alarms.Mark { m.Recommends = true; return m }
	by := func(m alarms.Mark, cluster string) v1alpha1.Claim {
		return v1alpha1.Claim{By: m.Namespace + "/" + m.Name, Cluster: cluster, Rules: m.RuleName("*")}
	}
	w := newWorld(t)
	for name, tt := range map[string]struct {
		rules  []alarms.Mark // oldest first
		change func(*otc.Rule)
		want   v1alpha1.Claim
	}{
		"none":                           {},
		"own":                            {rules: []alarms.Mark{orders, orders}, want: v1alpha1.Claim{Holds: true}},
		"another one's":                  {rules: []alarms.Mark{larger}, want: by(larger, "")},
		"own, and of a larger mark":      {rules: []alarms.Mark{larger, orders}, want: v1alpha1.Claim{Holds: true}},
		"own, and of a smaller mark":     {rules: []alarms.Mark{smaller, orders}, want: by(smaller, "")},
		"of another cluster":             {rules: []alarms.Mark{elsewhere}, want: by(elsewhere, otherClusterID)},
		"of two clusters":                {rules: []alarms.Mark{elsewhere, smaller}, want: by(smaller, "")},
		"others only recommend":          {rules: []alarms.Mark{recommends(smaller), recommends(elsewhere)}},
		"own, and others only recommend": {rules: []alarms.Mark{recommends(smaller), orders}, want: v1alpha1.Claim{Holds: true}},
		"own only recommends, another one's": {
			rules: []alarms.Mark{recommends(orders), larger}, want: by(larger, ""),
		},
		"of a node": {
			rules: []alarms.Mark{smaller}, want: by(smaller, ""),
			change: func(r *otc.Rule) { r.Dimension, r.DimensionValue = "rds_instance_id", node },
		},
		"renamed": {
			rules: []alarms.Mark{smaller}, want: by(smaller, ""),
			change: func(r *otc.Rule) { r.Name = "renamed" },
		},
		"of another instance":    {rules: []alarms.Mark{smaller}, change: func(r *otc.Rule) { r.DimensionValue = "x" + r.DimensionValue }},
		"of another service":     {rules: []alarms.Mark{smaller}, change: func(r *otc.Rule) { r.Namespace = "SYS.DDS" }},
		"without a mark":         {rules: []alarms.Mark{smaller}, change: func(r *otc.Rule) { r.Description = "" }},
		"with an unreadable one": {rules: []alarms.Mark{smaller}, change: func(r *otc.Rule) { r.Description += "!" + r.Description }},
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
			got, err := w.alarms.Claim(t.Context(), "shop", "orders", []string{w.instance, node}, w.clock())
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
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
