// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"
)

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
