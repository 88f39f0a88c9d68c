// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestMarkFitsItsLimitAndIsParsed(t *testing.T) {
	long, longer := strings.Repeat("n", 63), strings.Repeat("a", 253)
	tests := map[string]struct{ namespace, name, want string }{
		"short":                   {"shop", "orders", "rds-autopilot shop/orders cluster " + clusterID},
		"long name":               {"shop", longer, "rds-autopilot shop/" + longer[:128] + " cluster " + clusterID},
		"long namespace and name": {long, longer, "rds-autopilot " + long + "/" + longer[:69] + " cluster " + clusterID},
	}
	for name, tt := range tests {
		got := alarms.Mark(tt.namespace, tt.name, clusterID)
		if got != tt.want || len(got) > 192 {
			t.Errorf("%s: Mark\n got %s (%d)\nwant %s", name, got, len(got), tt.want)
		}
		namespace, object, cluster, ok := alarms.ParseMark(got)
		if !ok || cluster != clusterID ||
			!strings.HasPrefix(tt.namespace, namespace) || !strings.HasPrefix(tt.name, object) {
			t.Errorf("%s: ParseMark = %q, %q, %q, %v", name, namespace, object, cluster, ok)
		}
		// The mark is cut, but it must still identify the name of the topic.
		if n := v1alpha1.CloudName(namespace, object, uid); n != v1alpha1.CloudName(tt.namespace, tt.name, uid) {
			t.Errorf("%s: the mark gives the name %s", name, n)
		}
	}
	for _, other := range []string{
		"", "rds-autopilot shop/orders", "rds-autopilot shop/orders cluster ", "rds-autopilot shop cluster c1",
		"rds-autopilot /orders cluster c1", "rds-autopilot shop/ cluster c1", "rds-autopilot shop/orders cluster c1 and more",
		"rds-autopilot shop/a/b cluster c1", "my rds-autopilot shop/orders cluster c1",
	} {
		if _, _, _, ok := alarms.ParseMark(other); ok {
			t.Errorf("ParseMark accepts %q", other)
		}
	}
}
