// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A site that resolves to 127.0.0.1 reads nothing through a port-forward. Probes and Prometheus use any name.
func TestPagesAreServedForOwnHostsAndSitesOnly(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h := admin(registry("v1"), func() bool { return true }, page).Handler
	for _, tc := range []struct {
		host, site, mode, dest string
		served                 bool
	}{
		{host: "localhost:9090", served: true},
		{host: "LOCALHOST", served: true},
		{host: "127.0.0.1:9090", served: true},
		{host: "[::1]:9090", served: true},
		{host: "10.1.2.3:9090", served: true},
		{host: "[fd00::12]", served: true},
		{host: "rds-autopilot-admin.rds-autopilot.svc:9090", served: true},
		{host: "evil.example:9090"},
		{host: "evil.example"},
		{host: "localhost.evil.example:9090"},
		{host: "127.0.0.1.evil.example"},
		{host: "127.0.0.1.nip.io:9090"},
		{host: "evil.svc.example"},
		{host: "evilsvc"},
		{host: "evil"},
		{host: ""},
		{host: "localhost:9090", site: "same-origin", mode: "cors", dest: "empty", served: true},
		{host: "localhost:9090", site: "none", mode: "navigate", dest: "document", served: true},
		{host: "localhost:9090", site: "cross-site", mode: "navigate", dest: "document", served: true},
		{host: "localhost:9090", site: "cross-site", mode: "navigate", dest: "iframe"},
		{host: "localhost:9090", site: "cross-site", mode: "no-cors", dest: "image"},
		{host: "localhost:9090", site: "cross-site", mode: "no-cors", dest: "script"},
		{host: "localhost:9090", site: "same-site", mode: "cors", dest: "empty"},
		{host: "localhost:9090", site: "nonsense"},
		{host: "evil.example:9090", site: "same-origin", mode: "cors", dest: "empty"},
	} {
		for path, open := range map[string]bool{"/": false, "/health": false, "/databases/a/b": false, "/status.js": false, "/metrics": true, "/healthz": true, "/readyz": true} {
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
