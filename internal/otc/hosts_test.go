// SPDX-License-Identifier: Apache-2.0

package otc_test

import (
	"net/url"
	"testing"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

func TestSMNHostIsFromTheCatalogue(t *testing.T) {
	sim := simulate(t, simcloud.Options{})
	c := connect(t, sim.Env())
	if host := c.SMNHost(); host == "" || host != hostOf(t, sim.AuthURL()) {
		t.Errorf("%q, and the simulated cloud is at %s", host, sim.AuthURL())
	}
}

func hostOf(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
