// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"fmt"
	"strings"
)

// InstanceDimension returns the name of the dimension whose value is the id of an instance of this engine
// (RDS umn: configuring_displayed_metrics.rst). It returns an error for an unknown engine.
func InstanceDimension(engine string) (string, error) {
	switch strings.ToLower(engine) {
	case "mysql":
		return "rds_cluster_id", nil
	case "postgresql":
		return "postgresql_cluster_id", nil
	case "sqlserver":
		return "rds_cluster_sqlserver_id", nil
	}
	return "", fmt.Errorf("no such engine: %s", engine)
}

// NodeDimension returns the name of the dimension whose value is the id of a node of this engine
// (RDS api: rds_monitoring_metrics_description.rst). It returns an error for an unknown engine.
func NodeDimension(engine string) (string, error) {
	switch strings.ToLower(engine) {
	case "mysql":
		return "rds_instance_id", nil
	case "postgresql":
		return "postgresql_instance_id", nil
	case "sqlserver":
		return "rds_instance_sqlserver_id", nil
	}
	return "", fmt.Errorf("no such engine: %s", engine)
}
