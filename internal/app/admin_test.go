// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"net/http/httptest"
	"testing"
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
			handler.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
			if w.Code != want {
				t.Errorf("GET %s: %d, want %d", c.path, w.Code, want)
			}
		}
	}
}
