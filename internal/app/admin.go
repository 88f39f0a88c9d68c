// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net"
	"net/http"
	"strings"
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

// replicaGauges registers the gauges of this replica, and returns the one that shows whether it leads.
func replicaGauges(reg prometheus.Registerer, refused func() []string, unreadable func() int) prometheus.Gauge {
	leader := prometheus.NewGauge(prometheus.GaugeOpts{Name: "rds_autopilot_leader",
		Help: "1 on the replica that leads and decides, else 0."})
	reg.MustRegister(leader, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rds_autopilot_refused_namespaces",
		Help: "Watched namespaces that the Kubernetes API does not let this replica list. Nothing in them is managed. The log names them.",
	}, func() float64 { return float64(len(refused())) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rds_autopilot_unreadable_rds",
		Help: "Rds that the service skips, because one of their fields has another type. A Warning event on each names the field.",
	}, func() float64 { return float64(unreadable()) }))
	return leader
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

// protectPages refuses requests that a page of another site makes through the browser of a person with a port-forward.
// Without it, a site whose name resolves to 127.0.0.1 (DNS rebinding) could read the pages.
func protectPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !isOwnHost(r.Host):
			writeText(w, http.StatusForbidden, "The pages are served for localhost, for an IP address and for a Service (NAME.NAMESPACE.svc) only. Use kubectl port-forward.")
		case !isOwnSite(r.Header):
			writeText(w, http.StatusForbidden, "Another site made this request. Open the page itself.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isOwnHost reports whether the Host of a request cannot be the name of somebody's site: localhost, an IP address, or
// the name of a Service. Nobody can register a name below svc or local.
func isOwnHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	return host == "localhost" || net.ParseIP(host) != nil || strings.HasSuffix(host, ".svc") ||
		strings.HasSuffix(host, ".svc.cluster.local")
}

// isOwnSite reports whether a request comes from the pages themselves, from a person, or from a client that is no
// browser. A link on another site may open a page. Another port of localhost is the same site, but not the same origin.
func isOwnSite(h http.Header) bool {
	switch h.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document"
}
