// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// In a network whose only way out is a proxy, certificates and confirmations must use it as the cloud's API does. The
// proxy has a private address and resolves the names.
func TestClientTakesTheProxy(t *testing.T) {
	asked := ""
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.Host
		w.WriteHeader(http.StatusForbidden)
	}))
	defer proxy.Close()
	via := func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	resp, err := NewClient(Fixed("smn.example"), nil, via).Get("https://smn.example/smn")
	if err == nil {
		_ = resp.Body.Close()
	}
	want := "through the proxy " + strings.TrimPrefix(proxy.URL, "http://")
	if asked != "CONNECT smn.example:443" || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the proxy was asked to %s, and the error is %v", asked, err)
	}
}
