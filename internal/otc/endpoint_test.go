// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"net/url"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// The password goes to the identity service, and the token to the others, so each of them is a line in the log.
func TestPlainHTTPToTheCloudIsLoggedUnlessLoopback(t *testing.T) {
	for raw, want := range map[string]int{
		"https://a.example": 0, "http://a.example": 2, "http://10.0.0.1": 2,
		"http://127.0.0.1:8080": 0, "http://localhost": 0,
	} {
		core, logs := observer.New(zapcore.WarnLevel)
		o := Options{Env: lookUp(fakeEnv(raw)), Log: zap.New(core), Endpoints: map[string]string{"smn": raw}}
		connectTo(t, &fake{}, o)
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if crosses := CrossesNetworkUnencrypted(u); crosses != (want > 0) || logs.Len() != want {
			t.Errorf("%s crosses the network unencrypted: %t, want %d lines: %v", raw, crosses, want, logs.All())
		}
	}
}
