// Package monitoring holds tests of what is handed out for Prometheus and Grafana: alert rules, dashboards and the
// configuration of kube-state-metrics, with the real promtool and the real Prometheus where "make tools" has built them.
package monitoring
