// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/internal/status"
)

func TestHealthShowsWhatTheRegistryHas(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	gauge := func(name string, value float64) {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "rds_autopilot_" + name})
		g.Set(value)
		reg.MustRegister(g)
	}
	gauge("leader", 1)
	gauge("cloud_logged_in", 0)
	gauge("last_sweep_timestamp_seconds", float64(now().Add(-time.Hour).Unix()))
	gauge("waiting_databases", 7)
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rds_autopilot_cloud_requests_total"}, []string{"service", "operation", "code"})
	requests.WithLabelValues("smn", "list_topics", "200").Add(5)
	requests.WithLabelValues("smn", "list_topics", "429").Add(3)
	requests.WithLabelValues("rds", "list_instances", "error").Add(0)
	messages := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rds_autopilot_notifications_total"}, []string{"type", "result"})
	messages.WithLabelValues("Notification", "forged").Add(2)
	messages.WithLabelValues("Notification", "stored").Add(900)
	reg.MustRegister(requests, messages)
	h := newPage(t, func(o *status.Options) {
		o.Cache, o.Metrics = &cache{notSynced: true}, reg
		o.CloudErrors = func() []status.CloudError {
			return []status.CloudError{{Service: "smn", Text: "smn ListTopics: 503 <b>busy</b>", Time: now().Add(-3 * time.Minute)}}
		}
	})
	page := text(get(t, h, "/health", http.StatusOK))
	for _, want := range []string{
		"This replica leads", "The cloud refused the credentials", "The sweep is overdue", "The caches are not filled yet",
		"7 databases", "The leader is pod-2", "smn list_topics 5 3 429: 3", "Notification stored 900 Notification forged 2",
		"smn 3m ago smn ListTopics: 503 <b>busy</b>", "rds-autopilot doctor --public-url",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	if strings.Contains(page, "list_instances") {
		t.Error("an operation that was never called is shown")
	}
}
