// SPDX-License-Identifier: Apache-2.0

package simcloud_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/recording"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/sim/replay"
)

// TestRecordedCloudsAgreeWithTheSimulation replays each recording of a real cloud.
func TestRecordedCloudsAgreeWithTheSimulation(t *testing.T) {
	files, err := filepath.Glob("../../../conformance/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("there is no recording in conformance/ yet")
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			file, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			lines, err := replay.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range replayed(t, lines, replay.Options{}) {
				t.Error(d)
			}
		})
	}
}

func replayed(t *testing.T, lines []recording.Exchange, opts replay.Options) []replay.Difference {
	t.Helper()
	found, err := replay.Run(t.Context(), lines, opts)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// client is a second client: plain requests and bodies, and nothing of the SDK.
type client struct {
	t     *testing.T
	sim   *simcloud.Cloud
	via   http.RoundTripper
	now   time.Time
	token string
}

func newClient(t *testing.T) *client {
	c := &client{t: t, now: time.Date(2026, 11, 26, 4, 0, 13, 0, time.UTC)}
	sim, err := simcloud.Start(simcloud.Options{Local: true, Now: func() time.Time { return c.now }, Transport: ears{}, SigningKey: signingKey()})
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

// ears accept each message.
type ears struct{}

func (ears) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
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

func (c *client) login() {
	c.t.Helper()
	c.call(201, "POST", "/iam/v3/auth/tokens", c.credentials())
}

func (c *client) credentials() string {
	return fmt.Sprintf(`{"auth":{"identity":{"methods":["password"],"password":{"user":{"name":%q,"password":%q,"domain":{"name":%q}}}},
		"scope":{"project":{"name":%q,"domain":{"name":%[3]q}}}}}`, c.env("OS_USERNAME"), c.env("OS_PASSWORD"), c.env("OS_DOMAIN_NAME"), c.env("OS_PROJECT_NAME"))
}

const (
	rds  = "/rds/v3/{project}"
	ces  = "/ces/V1.0/{project}"
	smnv = "/smn/v2/{project}/notifications"
)

func ruleBody(topic, instance string, above int) string {
	return fmt.Sprintf(`{"alarm_name":"probe","alarm_description":"a probe","metric":{"namespace":"SYS.RDS","metric_name":"rds039_disk_util","dimensions":[{"name":"rds_cluster_id","value":%q}]},
		"condition":{"period":1,"filter":"average","comparison_operator":">=","value":%d,"unit":"%%","count":1,"suppress_duration":0},"alarm_level":2,"alarm_enabled":true,"alarm_action_enabled":true,
		"alarm_actions":[{"type":"notification","notificationList":[%q]}],"ok_actions":[{"type":"notification","notificationList":[%[3]q]}]}`, instance, above, topic)
}

// record makes a recording of the simulation: the calls of doctor and of a growth, and a refused one.
func record(t *testing.T) []recording.Exchange {
	t.Helper()
	c := newClient(t)
	in, err := c.sim.AddInstance(simcloud.Instance{Flavor: "rds.mysql.n1.large.4.ha", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 40, CPUDemand: 0.6}})
	if err != nil {
		t.Fatal(err)
	}
	c.pass(75 * time.Minute)
	var file bytes.Buffer
	recorder := recording.New(&file, func() time.Time { return c.now })
	c.via = recorder.Wrap(c.sim, c.env("OS_PASSWORD"))

	c.login()
	c.call(200, "GET", rds+"/instances?offset=0&limit=100", "")
	c.call(200, "GET", rds+"/flavors/MySQL?version_name=8.0", "")
	c.call(200, "GET", rds+"/instances/"+in.ID+"/flavors-resize", "")
	c.call(200, "GET", rds+"/instances/"+in.ID+"/disk-auto-expansion", "")
	c.call(200, "GET", ces+"/quotas", "")
	c.call(200, "GET", ces+"/metrics?namespace=SYS.RDS&metric_name=rds048_disk_used_size&dim.0=rds_cluster_id,"+in.ID, "")
	from, to := c.now.Add(-30*time.Minute).UnixMilli(), c.now.UnixMilli()
	c.call(200, "POST", ces+"/batch-query-metric-data", fmt.Sprintf(
		`{"metrics":[{"namespace":"SYS.RDS","metric_name":"rds048_disk_used_size","dimensions":[{"name":"rds_cluster_id","value":%q}]}],"from":%d,"to":%d,"period":"1","filter":"average"}`, in.ID, from, to))
	topic := c.call(201, "POST", smnv+"/topics", `{"name":"probe","display_name":"a probe"}`)["topic_urn"].(string)
	c.call(0, "POST", smnv+"/topics", `{"name":"probe","display_name":"a probe"}`)
	subscription := c.call(201, "POST", smnv+"/topics/"+topic+"/subscriptions", `{"protocol":"https","endpoint":"https://alarms.example.com/smn"}`)["subscription_urn"].(string)
	c.call(200, "GET", smnv+"/subscriptions?offset=0&limit=100", "")
	c.pass(time.Second)
	c.sim.Confirm(subscription)
	c.call(200, "GET", smnv+"/subscriptions?offset=0&limit=100", "")
	c.call(200, "POST", smnv+"/topics/"+topic+"/subscriptions", `{"protocol":"https","endpoint":"https://alarms.example.com/smn"}`)
	alarm := c.call(201, "POST", ces+"/alarms", ruleBody(topic, in.ID, 0))["alarm_id"].(string)
	for range 3 {
		c.call(200, "GET", ces+"/alarms/"+alarm, "")
		c.pass(time.Minute)
	}
	c.call(200, "GET", ces+"/alarms?limit=100", "")
	job := c.call(202, "POST", rds+"/instances/"+in.ID+"/action", `{"enlarge_volume":{"size":110}}`)["job_id"].(string)
	for range 4 {
		c.call(200, "GET", rds+"/jobs?id="+job, "")
		c.call(200, "GET", rds+"/instances?id="+in.ID, "")
		c.pass(2 * time.Minute)
	}
	c.call(400, "POST", rds+"/instances/"+in.ID+"/action", `{"enlarge_volume":{"size":110}}`) // the size that it has
	c.call(204, "DELETE", ces+"/alarms/"+alarm, "")
	c.call(404, "GET", ces+"/alarms/"+alarm, "")
	c.call(200, "DELETE", smnv+"/topics/"+topic, "")
	if recorder.Err() != nil {
		t.Fatal(recorder.Err())
	}
	for _, secret := range []string{c.token, c.env("OS_PASSWORD"), c.env("OS_USERNAME"), c.env("OS_DOMAIN_NAME"), c.sim.ProjectID(), in.ID, in.Name, "alarms.example.com", "probe"} {
		if strings.Contains(file.String(), secret) {
			t.Errorf("%q is in the recording", secret)
		}
	}
	lines, err := replay.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestRecordedSimulationReplaysWithoutADifference(t *testing.T) {
	for _, d := range replayed(t, record(t), replay.Options{}) {
		t.Error(d)
	}
}

// Each deliberate difference must fail a replay, and the message must name the field or the call.
func TestRecordedSimulationDiffersFromAChangedOne(t *testing.T) {
	lines := record(t)
	replace := func(old, by string) func(string, []byte) []byte {
		return func(_ string, body []byte) []byte { return bytes.ReplaceAll(body, []byte(old), []byte(by)) }
	}
	for _, tc := range []struct {
		name   string
		differ replay.Options
		want   string
	}{
		{"another status", replay.Options{Settings: simcloud.Settings{NoResizeList: true}}, "flavors-resize: the status is 200 in the recording and 404"},
		{"a topic that exists is refused", replay.Options{Settings: simcloud.Settings{Odd: simcloud.Odd{TopicExistsRefused: true}}}, "/topics: the status is 200 in the recording and"},
		{"a key is missing", replay.Options{Settings: simcloud.Settings{ExistsAsCode: true}}, "subscription_urn is missing in the simulation"},
		{"no data", replay.Options{Settings: simcloud.Settings{Odd: simcloud.Odd{NoUsedSpace: true}}}, "metrics has 1 rows in the recording and none in the simulation"},
		{"another first state", replay.Options{Settings: simcloud.Settings{NewRule: simcloud.StateInsufficientData}}, "are [ok] in the recording and [insufficient_data] in the simulation"},
		{"a state that never comes", replay.Options{Settings: simcloud.Settings{Odd: simcloud.Odd{RawRulesSleep: true}}}, "are [ok alarm] in the recording and [ok] in the simulation"},
		{"a job that fails", replay.Options{Settings: simcloud.Settings{JobsFail: true}}, "are [Running Completed] in the recording and [Running Failed] in the simulation"},
		{"another number for a state", replay.Options{Settings: simcloud.Settings{Odd: simcloud.Odd{ConfirmedIsTwo: true}}}, "are [0 1] in the recording and [0 2] in the simulation"},
		{"another word for a filter", replay.Options{Settings: simcloud.Settings{Normalizes: true}}, `condition.filter is "average" in the recording and "raw"`},
		{"another unit", replay.Options{Reply: replace(`"unit":"GB"`, `"unit":"MB"`)}, `unit is "GB" in the recording and "MB" in the simulation`},
		{"another type", replay.Options{Reply: replace(`"size":100`, `"size":"100"`)}, "volume.size is a number in the recording and a string in the simulation"},
		{"another form of a time", replay.Options{Reply: replace(`+0000"`, `Z"`)}, "created has the form time+0000 in the recording"},
		{"a further key", replay.Options{Reply: replace(`"total_count"`, `"count":1,"total_count"`)}, "count is not in the recording"},
		{"another code", replay.Options{Reply: replace("DBS.200306", "DBS.200023")}, `error_code is "DBS.200306" in the recording and "DBS.200023"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found := replayed(t, lines, tc.differ)
			var all strings.Builder
			for _, d := range found {
				all.WriteString(d.String())
			}
			if !strings.Contains(all.String(), tc.want) {
				t.Errorf("no difference says %q:\n%s", tc.want, all.String())
			}
			if len(found) > 0 && !strings.Contains(found[0].String(), "recorded    ") {
				t.Errorf("the bodies are not side by side: %s", found[0])
			}
		})
	}
}
