// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/app"
)

// Ctrl-C while doctor connects leaves it without a client of the cloud and of the cluster.
func TestInterruptWhileConnectingEndsTheRun(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"OS_AUTH_URL": "http://127.0.0.1:1", "OS_USERNAME": "u", "OS_PASSWORD": "p", "OS_DOMAIN_NAME": "d", "OS_PROJECT_NAME": "eu-de",
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := Options{Options: app.Defaults(), KubeErr: errors.New("none"), Wait: time.Second}
	o.PublicURL, o.Env = &url.URL{Scheme: "https", Host: "a.example"}, func(k string) string { return env[k] }
	states := map[string]State{}
	o.Report = func(r Result) { states[r.Check] = r.State }
	Run(ctx, o)
	if states["removed"] != Unseen || states["interrupted"] != Failed || len(states) != 2 {
		t.Errorf("%v", states)
	}
}
