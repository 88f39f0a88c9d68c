// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"testing"

	"github.com/mcsps/rds-autopilot/alarms"
)

func TestDimensionsOfEachEngine(t *testing.T) {
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
