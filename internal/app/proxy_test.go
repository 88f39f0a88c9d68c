// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
)

// TestMain sets the proxy for all tests, because net/http reads the environment once. No test's own server is affected:
// requests to this machine take no proxy.
func TestMain(m *testing.M) {
	_ = os.Setenv("HTTPS_PROXY", "http://user:secret@proxy.invalid:3128")
	_ = os.Setenv("NO_PROXY", "internal.example")
	os.Exit(m.Run())
}

// A network whose only way out is a proxy lets the calls of the cloud's API through, because the SDK's client takes it.
func TestCertificatesAndConfirmationsTakeTheProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"smn.example", "127.0.0.1:1"} {
		client := Options{}.smnClient(smn.Fixed(host))
		client.Timeout = time.Minute
		resp, err := client.Get("https://" + host + "/smn/")
		if err == nil {
			_ = resp.Body.Close()
			t.Fatal("it answers")
		}
		if proxied := strings.Contains(err.Error(), "through the proxy proxy.invalid:3128"); proxied != (host == "smn.example") {
			t.Errorf("%s: %v", host, err)
		}
	}
	// Without NO_PROXY, even the requests to the Kubernetes API take it.
	_, err := ConnectKube(t.Context(), &rest.Config{Host: "https://10.247.0.1:443"}, Options{LeaseNamespace: "own", Log: zap.NewNop()})
	if err == nil || !strings.Contains(err.Error(), "10.247.0.1:443 through the proxy proxy.invalid:3128, which NO_PROXY") {
		t.Errorf("the Kubernetes API: %v", err)
	}
}
