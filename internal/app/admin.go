// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func registry(version string) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "rds_autopilot_build_info", Help: "Always 1. The label names the build that runs.",
	}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build)
	return reg
}

func leaderGauge(reg prometheus.Registerer) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "rds_autopilot_leader",
		Help: "1 on the replica that leads and decides, else 0."})
	reg.MustRegister(g)
	return g
}

func kubernetesGauges(reg prometheus.Registerer, refused func() []string, unreadable func() int) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rds_autopilot_refused_namespaces",
		Help: "Watched namespaces that the Kubernetes API does not let this replica list. Nothing in them is managed. The log names them.",
	}, func() float64 { return float64(len(refused())) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rds_autopilot_unreadable_rds",
		Help: "Rds that the service skips, because one of their fields has another type. A Warning event on each names the field.",
	}, func() float64 { return float64(unreadable()) }))
}

func admin(reg *prometheus.Registry, ready func() bool, page http.Handler) *http.Server {
	mux := chi.NewMux()
	// Compression would cost 1.6 MB of memory, and Prometheus usually scrapes from the same cluster.
	mux.Method(http.MethodGet, "/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{Timeout: 10 * time.Second, DisableCompression: true}))
	mux.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	mux.Get("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			writeText(w, http.StatusServiceUnavailable, "not ready")
			return
		}
		writeText(w, http.StatusOK, "ok")
	})
	if page != nil {
		mux.Mount("/", protectPages(page))
	}
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute,
	}
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // an error means that the client has gone
}
