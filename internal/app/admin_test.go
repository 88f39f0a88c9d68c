// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"
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

// regionOfCloud is a cloud whose SMN host is empty before the first login.
type regionOfCloud struct{ region, smn string }

func (w *regionOfCloud) Region() string  { return w.region }
func (w *regionOfCloud) SMNHost() string { return w.smn }

func TestHostsFollowTheCatalogueAndTheRegion(t *testing.T) {
	const ch2 = "smn.eu-ch2.sc.otc.t-systems.com"
	override := map[string]string{"smn": "https://proxy.example"}
	for _, tc := range []struct {
		name    string
		options Options
		region  string
		smn     string
		cert    string
		confirm string // empty: it is required
	}{
		{"eu-de", Options{}, "eu-de", "smn.eu-de.otc.t-systems.com", "smn.eu-de.otc.t-systems.com", Console},
		{"eu-nl", Options{}, "eu-nl", "smn.eu-nl.otc.t-systems.com", "smn.eu-nl.otc.t-systems.com", Console},
		{"eu-ch2", Options{}, "eu-ch2", ch2, ch2, ""},
		{"an unknown region", Options{}, "eu-xx", "smn.cloud.example:8443", "smn.cloud.example:8443", ""},
		{"eu-de, not reached yet", Options{}, "eu-de", "", "smn.eu-de.otc.t-systems.com", Console},
		{"eu-ch2, not reached yet", Options{}, "eu-ch2", "", ch2, ""},
		{"another endpoint of SMN", Options{Endpoints: override}, "eu-de", "proxy.example", "smn.eu-de.otc.t-systems.com", Console},
		{"given", Options{CertHosts: []string{"a.example"}, ConfirmHosts: []string{"b.example"}}, "eu-ch2", ch2, "a.example", "b.example"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := CertHosts(tc.options, &regionOfCloud{tc.region, tc.smn})(); !slices.Equal(got, []string{tc.cert}) {
				t.Errorf("certificates from %v, want %s", got, tc.cert)
			}
			got, err := ConfirmHosts(tc.options, tc.region)
			if tc.confirm == "" {
				if err == nil || !strings.Contains(err.Error(), "--smn-confirm-hosts") || strings.Contains(err.Error(), "\n") {
					t.Errorf("confirmed at %v, %v; want it required", got, err)
				}
			} else if err != nil || !slices.Equal(got, []string{tc.confirm}) {
				t.Errorf("confirmed at %v, %v; want %s", got, err, tc.confirm)
			}
		})
	}
}

// TestMain sets a proxy that refuses everything, because net/http reads the environment once. No test's own server is
// affected: requests to this machine take no proxy.
func TestMain(m *testing.M) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	_ = os.Setenv("HTTPS_PROXY", strings.Replace(proxy.URL, "//", "//user:secret@", 1))
	_ = os.Setenv("NO_PROXY", "internal.example")
	os.Exit(m.Run())
}

// Each client takes the proxy of the environment. NO_PROXY may lack the address of the Kubernetes API, so the error must
// say that the proxy has refused the request, and not the server.
func TestErrorsNameTheProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	o := Options{LeaseNamespace: "default", CloudRate: 5, Log: zap.NewNop(), Env: func(name string) string {
		return map[string]string{"OS_AUTH_URL": "https://iam.example/v3", "OS_USERNAME": "u", "OS_PASSWORD": "pa55word", "OS_DOMAIN_NAME": "d",
			"OS_PROJECT_NAME": "eu-de"}[name]
	}}
	_, proxy, _ := strings.Cut(os.Getenv("HTTPS_PROXY"), "@")
	for name, connect := range map[string]func() error{
		"a certificate":            func() error { return Probe(t.Context(), o, "smn.example") },
		"a host without the proxy": func() error { return Probe(t.Context(), o, "127.0.0.1:1") },
		"the cloud":                func() error { _, err := ConnectCloud(t.Context(), o, nil, false); return err },
		"Kubernetes": func() error {
			_, err := ConnectKube(t.Context(), &rest.Config{Host: "https://10.247.0.1"}, o)
			return err
		},
	} {
		err := connect()
		if err == nil || strings.Contains(err.Error(), "through the proxy "+proxy) == strings.Contains(name, "without") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
