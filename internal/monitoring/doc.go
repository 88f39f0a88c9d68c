// SPDX-License-Identifier: Apache-2.0

// Package monitoring holds tests of what is handed out for Prometheus and Grafana: alert rules, dashboards and the
// configuration of kube-state-metrics, with the real promtool, Prometheus and kube-state-metrics where "make tools" has built them.
package monitoring
