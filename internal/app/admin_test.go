// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// The status page takes only what nothing else answers, and it is not there where it is switched off.
func TestTheStatusPageIsBesideMetricsAndProbes(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for _, c := range []struct {
		path          string
		want, without int
	}{
		{path: "/", want: http.StatusTeapot, without: http.StatusNotFound},
		{path: "/databases/shop/orders", want: http.StatusTeapot, without: http.StatusNotFound},
		{path: "/health", want: http.StatusTeapot, without: http.StatusNotFound},
		{path: "/healthz", want: http.StatusOK, without: http.StatusOK},
		{path: "/readyz", want: http.StatusServiceUnavailable, without: http.StatusServiceUnavailable},
		{path: "/metrics", want: http.StatusOK, without: http.StatusOK},
	} {
		for handler, want := range map[*http.Server]int{
			admin(registry("v1"), func() bool { return false }, page): c.want,
			admin(registry("v1"), func() bool { return false }, nil):  c.without,
		} {
			w := httptest.NewRecorder()
			handler.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost:9090"+c.path, nil))
			if w.Code != want {
				t.Errorf("GET %s: %d, want %d", c.path, w.Code, want)
			}
		}
	}
}

// broken is a collector of objects that it cannot read.
type broken struct{ desc *prometheus.Desc }

func (b broken) Describe(ch chan<- *prometheus.Desc) { ch <- b.desc }
func (broken) Collect(chan<- prometheus.Metric)      { panic("a broken object") }

// The registry collects in goroutines of its own, and turns a panic into an error.
func TestPanicOfACollectorFailsTheScrapeAndNotTheProcess(t *testing.T) {
	t.Parallel()
	reg := registry("v1")
	reg.MustRegister(broken{prometheus.NewDesc("rds_autopilot_broken", "b", nil, nil)})
	h := admin(reg, func() bool { return true }, nil).Handler
	for path, want := range map[string]int{"/metrics": http.StatusInternalServerError, "/healthz": http.StatusOK} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d: %s", path, w.Code, want, w.Body)
		}
	}
}
