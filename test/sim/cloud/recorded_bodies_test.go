// SPDX-License-Identifier: Apache-2.0

package simcloud_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// recordedBodies is the folder with bodies from public sources. It is not part of this repository.
const recordedBodies = "../../../../shared/otc/recorded"

// body is a recorded reply, and the request to which the simulation sends its own.
type body struct {
	file, method, path, sent string
	settings                 simcloud.Settings
	prepare                  func(*populated) // may be nil
	// allowed has regular expressions for known differences. The line above each gives the reason.
	allowed []string
}

// The forms of the simulation's replies must be those of replies in public sources.
func TestRecordedBodiesAgreeWithTheSimulation(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(recordedBodies, "index.json"))
	if err != nil {
		t.Skip("the folder shared/otc/recorded beside the checkout is missing, so no body from a public source is compared")
	}
	var all []struct {
		File   string
		Status int
	}
	if err := json.Unmarshal(index, &all); err != nil {
		t.Fatal(err)
	}
	for _, b := range bodiesOf() {
		t.Run(b.file, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join(recordedBodies, b.file+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var status int
			for _, entry := range all {
				if entry.File == b.file+".json" {
					status = entry.Status
				}
			}
			c := newClient(t, nil).populate()
			c.sim.Configure(func(s *simcloud.Settings) { *s = b.settings })
			if b.prepare != nil {
				b.prepare(c)
			}
			got, raw := c.raw(b.method, c.fill(b.path), c.fill(b.sent))
			if got != status {
				t.Errorf("status %d, recorded is %d: %s", got, status, raw)
			}
			for _, what := range differences(want, raw) {
				known := false
				for _, form := range slices.Concat(b.allowed, examples()) {
					known = known || regexp.MustCompile(form).MatchString(what)
				}
				if !known {
					t.Errorf("%s %s: %s\nrecorded:\n%s\nsimulated:\n%s", b.method, b.path, what, want, raw)
				}
			}
		})
	}
}

// populated is a client of a simulation with an instance, a rule, a topic, a subscription and a finished job.
type populated struct {
	*client
	instance string
	values   *strings.Replacer
}

func (c *populated) fill(s string) string { return c.values.Replace(s) }

func (c *client) populate() *populated {
	in := c.instance("rds.mysql.n1.large.4", 100, 40)
	c.pass(75 * time.Minute)
	c.login()
	c.call(200, "GET", rds+"/instances", "")
	topic := c.newTopic("probe")
	subscription := c.subscribe(topic, "https://alarms.example.com/smn")
	alarm := c.call(201, "POST", ces+"/alarms", ruleBody(topic, in.ID, 0))["alarm_id"].(string)
	job := c.act(202, in.ID, enlarge(110))["job_id"].(string)
	c.pass(10 * time.Minute)
	return &populated{client: c, instance: in.ID, values: strings.NewReplacer(
		"{instance}", in.ID, "{topic}", topic, "{subscription}", subscription, "{alarm}", alarm, "{job}", job,
		"{login}", c.credentials(), "{from}", fmt.Sprint(c.now.Add(-time.Hour).UnixMilli()), "{to}", fmt.Sprint(c.now.UnixMilli()))}
}
