// SPDX-License-Identifier: Apache-2.0

// Package release tests everything that a release hands out: the chart, the image, the alert rules, the dashboards and the
// configuration of kube-state-metrics. It uses the real tools (helm, kubectl, ko, crane, promtool,
// kube-state-metrics) and a real API server. "make tools" builds the tools, and a test fails if its tool is missing.
package release
