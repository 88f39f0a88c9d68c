package alarms

import (
	"context"
	"fmt"
	"strings"
)

// Dimension is what the rules of an instance shall watch: the instance, unless Cloud Eye has data only of its primary
// node. It asks Cloud Eye; ask it 30 minutes after ACTIVE at the earliest, and again after a failover.
func (a *Alarms) Dimension(ctx context.Context, engine, instanceID, primaryNodeID string) (name, value string, err error) {
	instance, err := InstanceDimension(engine)
	if err != nil {
		return "", "", err
	}
	node, err := NodeDimension(engine)
	if err != nil {
		return "", "", err
	}
	metric, err := MetricName(Storage)
	if err != nil {
		return "", "", err
	}
	listed, err := a.cloud.MetricListed(ctx, metric, instance, instanceID)
	if err != nil {
		return "", "", fmt.Errorf("list metrics: %w", err)
	}
	if listed || primaryNodeID == "" {
		return instance, instanceID, nil
	}
	if listed, err = a.cloud.MetricListed(ctx, metric, node, primaryNodeID); err != nil {
		return "", "", fmt.Errorf("list metrics: %w", err)
	}
	if listed {
		return node, primaryNodeID, nil
	}
	return instance, instanceID, nil
}

// InstanceDimension is the dimension whose value is an instance's id (RDS umn: configuring_displayed_metrics.rst).
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

// NodeDimension is the dimension whose value is a node's id (RDS api: rds_monitoring_metrics_description.rst).
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
