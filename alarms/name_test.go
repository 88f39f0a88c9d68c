// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestName(t *testing.T) {
	long := strings.Repeat("n", 63)
	tests := map[string]struct{ namespace, name, uid, want string }{
		"as it is":              {"shop", "orders", uid, "autopilot_shop_orders_1b4e28ba"},
		"dots and underscores":  {"shop", "or.de_rs", uid, "autopilot_shop_or-de-rs_1b4e28ba"},
		"not ASCII":             {"shöp", "o/r", uid, "autopilot_sh-p_o-r_1b4e28ba"},
		"just fits":             {long, strings.Repeat("a", 17), uid, "autopilot_" + long + "_" + strings.Repeat("a", 17) + "_1b4e28ba"},
		"a long name":           {"shop", strings.Repeat("a", 253), uid, "autopilot_shop_" + strings.Repeat("a", 76) + "_1b4e28ba"},
		"a long namespace":      {long, strings.Repeat("a", 30), uid, "autopilot_" + strings.Repeat("n", 50) + "_" + strings.Repeat("a", 30) + "_1b4e28ba"},
		"both cut":              {long, strings.Repeat("a", 253), uid, "autopilot_" + strings.Repeat("n", 40) + "_" + strings.Repeat("a", 40) + "_1b4e28ba"},
		"a uid shorter than 8":  {"a", "b", "12", "autopilot_a_b_12"},
		"odd characters in uid": {"a", "b", "1_2/3456789", "autopilot_a_b_1-2-3456"},
	}
	grammar := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := alarms.Name(tt.namespace, tt.name, tt.uid)
			if got != tt.want {
				t.Errorf("Name\n got %s\nwant %s", got, tt.want)
			}
			if !grammar.MatchString(got) {
				t.Errorf("%q (%d) is no name", got, len(got))
			}
		})
	}
	t.Run("two that are cut alike differ by uid", func(t *testing.T) {
		a := alarms.Name(long, strings.Repeat("a", 253), "11111111-")
		b := alarms.Name(long, strings.Repeat("a", 252)+"b", "22222222-")
		if a == b || a[:90] != b[:90] {
			t.Errorf("%s and %s", a, b)
		}
	})
	if got := alarms.RuleName("autopilot_a_b_12", v1alpha1.MetricStorage); got != "autopilot_a_b_12_storage" {
		t.Error(got)
	}
}

func TestDimensions(t *testing.T) {
	for engine, want := range map[string][2]string{
		"MySQL":      {"rds_cluster_id", "rds_instance_id"},
		"mysql":      {"rds_cluster_id", "rds_instance_id"},
		"PostgreSQL": {"postgresql_cluster_id", "postgresql_instance_id"},
		"SQLServer":  {"rds_cluster_sqlserver_id", "rds_instance_sqlserver_id"},
		"Oracle":     {},
	} {
		instance, err1 := alarms.InstanceDimension(engine)
		node, err2 := alarms.NodeDimension(engine)
		if instance != want[0] || node != want[1] || (err1 != nil) != (want[0] == "") || (err2 != nil) != (want[1] == "") {
			t.Errorf("%s: %s, %s, %v, %v", engine, instance, node, err1, err2)
		}
	}
}
