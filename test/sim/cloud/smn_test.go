// SPDX-License-Identifier: Apache-2.0

package simcloud_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

func (c *client) newTopic(name string) string {
	c.t.Helper()
	return c.call(201, "POST", smnv+"/topics", `{"name":"`+name+`"}`)["topic_urn"].(string)
}

func subscriptionBody(endpoint string) string {
	protocol, _, _ := strings.Cut(endpoint, ":")
	return fmt.Sprintf(`{"endpoint":%q,"protocol":%q}`, endpoint, protocol)
}

// subscribe returns the URN of a new subscription, which is not confirmed.
func (c *client) subscribe(topic, endpoint string) string {
	c.t.Helper()
	reply := c.call(201, "POST", smnv+"/topics/"+topic+"/subscriptions", subscriptionBody(endpoint))
	return reply["subscription_urn"].(string)
}

// The codes are those of SMN's manual: error_codes.rst.
func TestSMNRefusesWithTheDocumentedCode(t *testing.T) {
	c := loggedIn(t)
	topic, other := c.newTopic("a"), c.newTopic("b")
	c.subscribe(topic, "https://example.com/x")
	c.sim.Configure(func(s *simcloud.Settings) { s.TopicQuota, s.RefusePrivateEndpoints = 2, true })
	missing := strings.TrimSuffix(topic, "a") + "missing"
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
		code               string
	}{
		"topic quota":          {"POST", "/topics", `{"name":"c"}`, 403, "SMN.0004"},
		"topic name":           {"POST", "/topics", `{"name":"-c"}`, 400, "SMN.0002"},
		"long topic name":      {"POST", "/topics", `{"name":"` + strings.Repeat("c", 256) + `"}`, 400, "SMN.0002"},
		"display name":         {"POST", "/topics", `{"name":"a","display_name":"` + strings.Repeat("ä", 97) + `"}`, 400, "SMN.0003"},
		"no such topic":        {"DELETE", "/topics/" + missing, "", 404, "SMN.0006"},
		"topic URN":            {"DELETE", "/topics/nonsense", "", 400, "SMN.0005"},
		"limit":                {"GET", "/topics?limit=101", "", 400, "SMN.0015"},
		"offset":               {"GET", "/topics/" + topic + "/subscriptions?offset=-1", "", 400, "SMN.0015"},
		"protocol":             {"POST", "/topics/" + other + "/subscriptions", subscriptionBody("ftp://example.com"), 400, "SMN.0011"},
		"endpoint":             {"POST", "/topics/" + other + "/subscriptions", subscriptionBody("https:///x"), 400, "SMN.0012"},
		"private endpoint":     {"POST", "/topics/" + other + "/subscriptions", subscriptionBody("http://127.0.0.1:80"), 403, "SMN.0069"},
		"no such subscription": {"DELETE", "/subscriptions/" + topic + ":" + strings.Repeat("0", 32), "", 404, "SMN.0013"},
	} {
		if got := c.call(tc.status, tc.method, smnv+tc.path, tc.body); got["code"] != tc.code {
			t.Errorf("%s: %v, want %s", name, got, tc.code)
		}
	}
}

// The manual of Huawei Cloud says which replies are repeated. The faults serve storms and random tests, which would
// find less without notice if a fault had no effect.
func TestSMNSendsAgainAfterServerErrorsAndInjectedFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		statuses []int // the last one for ever
		fault    simcloud.DeliveryFault
		received []int // after 0, 1, 2 and 10 minutes
		state    simcloud.DeliveryState
	}{
		"accepted":                   {[]int{200}, simcloud.DeliveryFault{}, []int{1, 1, 1, 1}, simcloud.Delivered},
		"client error":               {[]int{404}, simcloud.DeliveryFault{}, []int{1, 1, 1, 1}, simcloud.Refused},
		"too many requests":          {[]int{429}, simcloud.DeliveryFault{}, []int{1, 1, 1, 1}, simcloud.Refused},
		"redirect":                   {[]int{302}, simcloud.DeliveryFault{}, []int{1, 1, 1, 1}, simcloud.Refused},
		"unavailable, then accepted": {[]int{503, 500, 204}, simcloud.DeliveryFault{}, []int{1, 2, 3, 3}, simcloud.Delivered},
		"unavailable":                {[]int{503}, simcloud.DeliveryFault{}, []int{1, 2, 3, 7}, simcloud.Dropped},
		"fault: drop":                {[]int{200}, simcloud.DeliveryFault{Drop: true}, []int{0, 0, 0, 0}, simcloud.Dropped},
		"fault: duplicate":           {[]int{200}, simcloud.DeliveryFault{Duplicate: true}, []int{2, 2, 2, 2}, simcloud.Delivered},
		"fault: lost reply":          {[]int{200}, simcloud.DeliveryFault{LoseReply: true}, []int{1, 2, 3, 7}, simcloud.Dropped},
		"fault: delay":               {[]int{200}, simcloud.DeliveryFault{Delay: 2 * time.Minute}, []int{0, 0, 1, 1}, simcloud.Delivered},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, func(simcloud.Delivery) simcloud.DeliveryFault { return tc.fault })
			received := 0
			c.endpoint = func() int {
				received++
				return tc.statuses[min(received, len(tc.statuses))-1]
			}
			c.login()
			c.subscribe(c.newTopic("a"), "https://example.com/x")
			for n, want := range tc.received {
				for range []int{1, 60, 60, 480}[n] {
					c.pass(map[bool]time.Duration{true: 0, false: time.Second}[n == 0])
				}
				if received != want {
					t.Errorf("%d messages at %v, want %d", received, c.now, want)
				}
			}
			if d := c.sim.Deliveries()[0]; d.State != tc.state {
				t.Errorf("the message is %s, want %s: %v", d.State, tc.state, d.Attempts)
			}
		})
	}
}
