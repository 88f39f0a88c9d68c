// SPDX-License-Identifier: Apache-2.0

package simcloud_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const (
	rds  = "/rds/v3/{project}"
	ces  = "/ces/V1.0/{project}"
	smnv = "/smn/v2/{project}/notifications"
)

// client sends plain requests to a simulated cloud in memory, so that no fault of the SDK can hide one of the
// simulation.
type client struct {
	t     *testing.T
	sim   *simcloud.Cloud
	via   http.RoundTripper
	now   time.Time
	token string
	// endpoint returns the status with which the endpoint of a message answers. Nil is 200.
	endpoint func() int
}

// newClient returns a client without a token. The clock stands at a full period of five minutes.
func newClient(t *testing.T, fault func(simcloud.Delivery) simcloud.DeliveryFault) *client {
	c := &client{t: t, now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	sim, err := simcloud.Start(simcloud.Options{
		Local: true, Now: func() time.Time { return c.now }, Transport: endpoint{c}, SigningKey: signingKey(), DeliveryFault: fault,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	c.sim, c.via = sim, sim
	return c
}

// signingKey is one for all simulations, because a new one takes half a second.
var signingKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

type endpoint struct{ c *client }

func (e endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	status := http.StatusOK
	if e.c.endpoint != nil {
		status = e.c.endpoint()
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// pass lets time pass.
func (c *client) pass(d time.Duration) {
	c.now = c.now.Add(d)
	c.sim.Step(c.t.Context())
}

func (c *client) env(key string) string {
	for _, kv := range c.sim.Env() {
		if value, is := strings.CutPrefix(kv, key+"="); is {
			return value
		}
	}
	return ""
}

// call sends a request and returns the decoded reply. {project} stands for the project's id. want 0 accepts any status.
func (c *client) call(want int, method, path, body string) map[string]any {
	c.t.Helper()
	status, raw := c.raw(method, path, body)
	if want != 0 && status != want {
		c.t.Fatalf("%s %s: %d, want %d: %s", method, path, status, want, raw)
	}
	out := map[string]any{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out); err != nil {
			c.t.Fatalf("%s %s: %v: %s", method, path, err, raw)
		}
	}
	return out
}

func (c *client) raw(method, path, body string) (int, []byte) {
	c.t.Helper()
	path = strings.ReplaceAll(path, "{project}", c.sim.ProjectID())
	base := strings.TrimSuffix(c.sim.Endpoint("iam"), "/iam")
	req, err := http.NewRequestWithContext(c.t.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", c.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.via.RoundTrip(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if token := res.Header.Get("X-Subject-Token"); token != "" {
		c.token = token
	}
	return res.StatusCode, raw
}

// loggedIn returns a client with a token.
func loggedIn(t *testing.T) *client {
	c := newClient(t, nil)
	c.login()
	return c
}

func (c *client) login() {
	c.t.Helper()
	c.call(201, "POST", "/iam/v3/auth/tokens", c.credentials())
}

func (c *client) credentials() string {
	return fmt.Sprintf(`{"auth":{"identity":{"methods":["password"],"password":{"user":{"name":%q,"password":%q,"domain":{"name":%q}}}},
		"scope":{"project":{"name":%q,"domain":{"name":%[3]q}}}}}`, c.env("OS_USERNAME"), c.env("OS_PASSWORD"), c.env("OS_DOMAIN_NAME"), c.env("OS_PROJECT_NAME"))
}

// instance adds an instance with that flavor, volume and used space.
func (c *client) instance(flavor string, gb int, usedGB float64) simcloud.Instance {
	c.t.Helper()
	in, err := c.sim.AddInstance(simcloud.Instance{Flavor: flavor, VolumeGB: gb, Workload: simcloud.Workload{UsedGB: usedGB, CPUDemand: 0.6}})
	if err != nil {
		c.t.Fatal(err)
	}
	return in
}

// use changes the used space of an instance from now on.
func (c *client) use(id string, usedGB float64) {
	c.t.Helper()
	if err := c.sim.SetWorkload(id, simcloud.Workload{UsedGB: usedGB}); err != nil {
		c.t.Fatal(err)
	}
}

// ruleBody creates a rule on the share of used space of a MySQL instance.
func ruleBody(topic, instance string, above int) string {
	return fmt.Sprintf(`{"alarm_name":"probe","alarm_description":"a probe","metric":{"namespace":"SYS.RDS","metric_name":"rds039_disk_util","dimensions":[{"name":"rds_cluster_id","value":%q}]},
		"condition":{"period":1,"filter":"average","comparison_operator":">=","value":%d,"unit":"%%","count":1,"suppress_duration":0},"alarm_level":2,"alarm_enabled":true,"alarm_action_enabled":true,
		"alarm_actions":[{"type":"notification","notificationList":[%q]}],"ok_actions":[{"type":"notification","notificationList":[%[3]q]}]}`, instance, above, topic)
}
