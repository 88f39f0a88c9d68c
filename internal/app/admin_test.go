// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// The status page serves only paths that no other handler has. Without a page, these return 404.
func TestAdminServesPageBesideMetricsAndProbes(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for _, c := range []struct {
		path          string
		want, without int
	}{
		{path: "/", want: http.StatusTeapot, without: http.StatusNotFound},
		{path: "/api/databases/shop/orders", want: http.StatusTeapot, without: http.StatusNotFound},
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

// A foreign site whose name resolves to 127.0.0.1 must not read the page through a port-forward. Probes and Prometheus
// use any name.
func TestPagesAreServedForOwnHostsAndSitesOnly(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h := admin(registry("v1"), func() bool { return true }, page).Handler
	for _, tc := range []struct {
		host, site, mode, dest string
		served                 bool
	}{
		{host: "localhost:9090", served: true},
		{host: "127.0.0.1:9090", served: true},
		{host: "[::1]:9090", served: true},
		{host: "10.1.2.3:9090", served: true},
		{host: "rds-autopilot-admin.rds-autopilot.svc:9090", served: true},
		{host: "rds-autopilot-admin.rds-autopilot.svc.cluster.local", served: true},
		{host: "localhost.cluster.local"},
		{host: "evil.example:9090"},
		{host: "127.0.0.1.evil.example"},
		{host: "127.0.0.1.nip.io:9090"},
		{host: "evil.svc.example"},
		{host: ""},
		{host: "localhost:9090", site: "same-origin", mode: "cors", dest: "empty", served: true},
		{host: "localhost:9090", site: "none", mode: "navigate", dest: "document", served: true},
		{host: "localhost:9090", site: "cross-site", mode: "navigate", dest: "document", served: true},
		{host: "localhost:9090", site: "cross-site", mode: "navigate", dest: "iframe"},
		{host: "localhost:9090", site: "cross-site", mode: "no-cors", dest: "script"},
		{host: "localhost:9090", site: "same-site", mode: "cors", dest: "empty"},
		{host: "localhost:9090", site: "nonsense"},
		{host: "evil.example:9090", site: "same-origin", mode: "cors", dest: "empty"},
	} {
		for path, open := range map[string]bool{
			"/": false, "/api/databases/a/b": false, "/page.js": false, "/metrics": true, "/readyz": true,
		} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = tc.host
			for header, value := range map[string]string{"Sec-Fetch-Site": tc.site, "Sec-Fetch-Mode": tc.mode, "Sec-Fetch-Dest": tc.dest} {
				if value != "" {
					r.Header.Set(header, value)
				}
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			want := http.StatusForbidden
			switch {
			case open:
				want = http.StatusOK
			case tc.served:
				want = http.StatusTeapot
			}
			if w.Code != want {
				t.Errorf("%s of %+v: %d, want %d", path, tc, w.Code, want)
			}
		}
	}
}
