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

// registry returns a registry of our own with what every process has.
func registry(version string) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "rds_autopilot_build_info", Help: "Always 1; the label says which build runs.",
	}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build)
	return reg
}

func leaderGauge(reg prometheus.Registerer) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "rds_autopilot_leader", Help: "1 on the replica that decides, else 0."})
	reg.MustRegister(g)
	return g
}

func reachableGauge(reg prometheus.Registerer, reachable func() bool) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rds_autopilot_kubernetes_reachable", Help: "1 if the Kubernetes API answered lately, else 0: then nothing can be stored.",
	}, func() float64 {
		if reachable() {
			return 1
		}
		return 0
	}))
}

// admin is the server of the address that is not public. page is the status page; nil where there is none.
func admin(reg *prometheus.Registry, ready func() bool, page http.Handler) *http.Server {
	mux := chi.NewMux()
	// Not compressed: what compresses takes 1.6 MB of memory, and whoever scrapes is near.
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
		mux.Mount("/", page)
	}
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
	}
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // the client is gone where this fails
}
