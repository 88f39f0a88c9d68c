package alarms

import (
	"fmt"
	"strings"
)

// Metrics, in the order of their weight.
const (
	Storage = "storage"
	CPU     = "cpu"
	Memory  = "memory"
)

const (
	namePrefix = "autopilot_"
	nameLimit  = 100 // a rule's name takes 128 characters (CES api v1: creating_an_alarm_rule.rst), and we add the metric
	uidLength  = 8
)

// Name is the base name of all that belongs to one database: autopilot_<namespace>_<name>_<first 8 of the uid>. A long
// namespace or name is cut, the uid never, so that two databases always differ by it.
func Name(namespace, name, uid string) string {
	namespace, name = plain(namespace), plain(name)
	if uid = plain(uid); len(uid) > uidLength {
		uid = uid[:uidLength]
	}
	room := nameLimit - len(namePrefix) - len("__") - uidLength
	if len(namespace)+len(name) > room {
		namespace = namespace[:min(len(namespace), max(room/2, room-len(name)))]
		name = name[:min(len(name), room-len(namespace))]
	}
	return namePrefix + namespace + "_" + name + "_" + uid
}

// plain keeps what all services take; the underscore is the separator and nothing else.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, s)
}

// RuleName is the name of the rule of one metric.
func RuleName(base, metric string) string { return base + "_" + metric }

func metrics() []string { return []string{Storage, CPU, Memory} }

// MetricName is Cloud Eye's name of a metric, in percent (RDS api: rds_monitoring_metrics_description.rst).
func MetricName(metric string) (string, error) {
	switch metric {
	case Storage:
		return "rds039_disk_util", nil
	case CPU:
		return "rds001_cpu_util", nil
	case Memory:
		return "rds002_mem_util", nil
	}
	return "", fmt.Errorf("no such metric: %s", metric)
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

// cut shortens a text to a number of bytes, between two characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
