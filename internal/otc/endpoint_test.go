// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"net/url"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestPlainHTTPIsNoticedUnlessLoopback(t *testing.T) {
	for raw, want := range map[string]bool{
		"https://a.example": false, "http://a.example": true, "http://127.0.0.1:8080": false, "http://localhost/smn": false, "http://10.0.0.1/": true,
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := CrossesNetworkUnencrypted(u); got != want {
			t.Errorf("%s: %t, want %t", raw, got, want)
		}
	}
}

// The password goes to the identity service, and the token to the others.
func TestPlainHTTPToTheCloudIsLogged(t *testing.T) {
	for url, want := range map[string]int{"http://cloud": 2, "https://cloud": 0, "http://127.0.0.1:1": 0} {
		core, logs := observer.New(zapcore.WarnLevel)
		o := Options{Env: lookUp(fakeEnv(url)), Log: zap.New(core), Endpoints: map[string]string{"smn": url}}
		connectTo(t, &fake{}, o)
		if logs.Len() != want {
			t.Errorf("%s: %v", url, logs.All())
		}
	}
}
