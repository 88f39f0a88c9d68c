// SPDX-License-Identifier: Apache-2.0

package simcloud_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const (
	rds = "/rds/v3/{project}"
	ces = "/ces/V1.0/{project}"
	smn = "/smn/v2/{project}/notifications"

	enlarge = `{"enlarge_volume":{"size":120}}`
	resize  = `{"resize_flavor":{"spec_code":"rds.mysql.n1.xlarge.4"}}`
	rule    = `{"alarm_name":"probe","alarm_description":"RDS autopilot",
		"alarm_level":2,"alarm_enabled":true,"alarm_action_enabled":true,
		"metric":{"namespace":"SYS.RDS","metric_name":"rds039_disk_util",
			"dimensions":[{"name":"rds_instance_id","value":"{node}"}]},
		"condition":{"period":300,"filter":"average","comparison_operator":">=","value":85,"unit":"%",
			"count":1,"suppress_duration":0},
		"alarm_actions":[{"type":"notification","notificationList":["{topic}"]}],
		"ok_actions":[{"type":"notification","notificationList":["{topic}"]}]}`
	login = `{"auth":{"identity":{"methods":["password"],
		"password":{"user":{"name":"{OS_USERNAME}","password":"{OS_PASSWORD}","domain":{"name":"{OS_DOMAIN_NAME}"}}}},
		"scope":{"project":{"name":"{OS_PROJECT_NAME}","domain":{"name":"{OS_DOMAIN_NAME}"}}}}}`
	series = `{"metrics":[{"namespace":"SYS.RDS","metric_name":"rds039_disk_util",
		"dimensions":[{"name":"rds_cluster_id","value":"{instance}"}]}],
		"from":{from},"to":{to},"period":"1","filter":"average"}`

	// The examples of an instance differ from each other: each leaves out fields that the manual's table has.
	optional = `(complete_version|alias|associated_with_ddm|charge_info|cpu|mem|enable_ssl|tags) is not in the recording|` +
		`_dns_names is missing|public_ips`
	noTopics = `(suppress_duration|_actions) is not in the recording` // the first example has none
	zones    = `az_(desc|status)\.`                                   // their keys are zones
)

// recorded are replies from public sources, and the requests to which the simulation sends its own.
var recorded = []struct{ file, method, path, sent, allowed string }{
	{"ces-v1-alarm-create.reply.manual", "POST", ces + "/alarms", rule, ""},
	{"ces-v1-alarm.manual", "GET", ces + "/alarms/{alarm}", "", ""},
	{"ces-v1-alarms.manual", "GET", ces + "/alarms", "", noTopics},
	{"ces-v1-metrics.manual", "GET", ces + "/metrics?limit=1", "", ""},
	{"ces-v1-quotas.manual", "GET", ces + "/quotas", "", ""},
	{"ces-v1-batch-metric-data-ecs.reply.manual", "POST", ces + "/batch-query-metric-data", series, ""},
	{"iam-token.captured", "POST", "/iam/v3/auth/tokens", login, ""},
	{"rds-instances-all.manual", "GET", rds + "/instances", "", optional},
	{"rds-flavors.manual", "GET", rds + "/flavors/MySQL?version_name=8.0", "", zones},
	{"rds-flavors-resize.manual", "GET", rds + "/instances/{instance}/flavors-resize", "", zones},
	{"rds-job-reboot-completed.manual", "GET", rds + "/jobs?id={job}", "", ""},
	{"rds-enlarge-volume.reply.manual", "POST", rds + "/instances/{instance}/action", enlarge, ""},
	{"rds-resize-flavor.reply.manual", "POST", rds + "/instances/{instance}/action", resize, ""},
	{"rds-error-DBS.200306.captured", "POST", rds + "/instances/{instance}/action", `{"enlarge_volume":{"size":110}}`, ""},
	{"smn-topic-create.reply.manual", "POST", smn + "/topics", `{"name":"another"}`, ""},
	{"smn-subscription-create.reply.manual", "POST", smn + "/topics/{topic}/subscriptions",
		`{"protocol":"https","endpoint":"https://other.example.com/smn"}`, ""},
	{"smn-subscriptions-of-topic.manual", "GET", smn + "/topics/{topic}/subscriptions", "", ""},
	{"smn-error-404.manual", "DELETE", smn + "/topics/urn:smn:eu-de:00000000000000000000000000000001:none", "", ""},
}

// must fails the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cloud is a simulation with an instance, a rule, a topic, a subscription and a finished job. It gets plain requests, so
// that no fault of the SDK can hide one of the simulation.
type cloud struct {
	*simcloud.Cloud
	t      *testing.T
	now    time.Time
	token  string
	values []string // what the names in braces stand for
}

func newCloud(t *testing.T) *cloud {
	c := &cloud{t: t, now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	var err error
	if c.Cloud, err = simcloud.Start(simcloud.Options{Local: true, Now: func() time.Time { return c.now }}); err != nil {
		t.Fatal(err)
	}
	c.values = []string{"{project}", c.ProjectID()}
	for _, pair := range c.Env() {
		key, value, _ := strings.Cut(pair, "=")
		c.values = append(c.values, "{"+key+"}", value)
	}
	c.send("POST", "/iam/v3/auth/tokens", login)
	in, err := c.AddInstance(simcloud.Instance{
		Name: "example-db", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 40},
	})
	must(t, err)
	c.pass(75 * time.Minute)
	c.send("POST", "/iam/v3/auth/tokens", login)
	c.values = append(c.values, "{instance}", in.ID, "{node}", in.Nodes[0].ID,
		"{from}", fmt.Sprint(c.now.Add(-time.Hour).UnixMilli()), "{to}", fmt.Sprint(c.now.UnixMilli()))
	c.keep("{topic}", "topic_urn", "POST", smn+"/topics", `{"name":"probe"}`)
	c.send("POST", smn+"/topics/{topic}/subscriptions", `{"protocol":"https","endpoint":"https://alarms.example.com/smn"}`)
	c.keep("{alarm}", "alarm_id", "POST", ces+"/alarms", rule)
	c.keep("{job}", "job_id", "POST", rds+"/instances/{instance}/action", `{"enlarge_volume":{"size":110}}`)
	c.pass(10 * time.Minute)
	return c
}

func (c *cloud) pass(d time.Duration) {
	c.now = c.now.Add(d)
	c.Step(c.t.Context())
}

// keep stores a value of a reply for later requests.
func (c *cloud) keep(name, key, method, path, body string) {
	c.t.Helper()
	_, raw := c.send(method, path, body)
	reply := map[string]any{}
	if err := json.Unmarshal(raw, &reply); err != nil {
		c.t.Fatalf("%s %s: %v: %s", method, path, err, raw)
	}
	c.values = append(c.values, name, fmt.Sprint(reply[key]))
}

// send sends a request, and returns the status and the body of the reply.
func (c *cloud) send(method, path, body string) (int, []byte) {
	c.t.Helper()
	fill := strings.NewReplacer(c.values...).Replace
	base := strings.TrimSuffix(c.Endpoint("iam"), "/iam")
	req, err := http.NewRequestWithContext(c.t.Context(), method, base+fill(path), strings.NewReader(fill(body)))
	must(c.t, err)
	req.Header.Set("X-Auth-Token", c.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.RoundTrip(req)
	must(c.t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	must(c.t, err)
	if token := res.Header.Get("X-Subject-Token"); token != "" {
		c.token = token
	}
	return res.StatusCode, raw
}

// The replies of the simulation must have the keys and types of replies in public sources. Those are not part of this
// repository.
func TestRepliesHaveTheKeysAndTypesOfRecordedOnes(t *testing.T) {
	const folder = "../../../../shared/otc/recorded"
	index, err := os.ReadFile(filepath.Join(folder, "index.json"))
	if err != nil {
		t.Skip("the folder shared/otc/recorded beside the checkout is missing, so no body from a public source is compared")
	}
	var all []struct {
		File   string
		Status int
	}
	must(t, json.Unmarshal(index, &all))
	c := newCloud(t)
	for _, b := range recorded {
		want, err := os.ReadFile(filepath.Join(folder, b.file+".json"))
		must(t, err)
		status, raw := c.send(b.method, b.path, b.sent)
		for _, entry := range all {
			if entry.File == b.file+".json" && entry.Status != status {
				t.Errorf("%s: status %d, recorded is %d: %s", b.file, status, entry.Status, raw)
			}
		}
		for _, what := range differences(want, raw) {
			if b.allowed == "" || !regexp.MustCompile(b.allowed).MatchString(what) {
				t.Errorf("%s: %s %s: %s", b.file, b.method, b.path, what)
			}
		}
		c.pass(20 * time.Minute) // until jobs have ended
	}
}

// The example is the one captured message of Open Telekom Cloud.
func TestAlarmMessageHasTheFieldsOfTheCapturedOne(t *testing.T) {
	body, err := os.ReadFile("../../../autopilot/smn/testdata/notification_alarm.json")
	must(t, err)
	c := newCloud(t)
	sent, err := c.SignedAlarm(strings.Repeat("0", 32), c.Topics()[0].URN, c.Rules()[0].ID, 91.37)
	must(t, err)
	var captured, simulated struct{ Subject, Message string }
	must(t, errors.Join(json.Unmarshal(body, &captured), json.Unmarshal(sent, &simulated)))
	if simulated.Subject != captured.Subject || !strings.Contains(simulated.Message, `"comparison_operator":"\u003e="`) {
		t.Errorf("%s, want %s; the message is %s", simulated.Subject, captured.Subject, simulated.Message)
	}
	for _, what := range differences([]byte(captured.Message), []byte(simulated.Message)) {
		if !strings.HasPrefix(what, ".template_variable.DataPoint.") { // its keys are times
			t.Error(what)
		}
	}
}

// differences returns the keys and types in which a reply of the simulation differs from a recorded one.
func differences(recorded, got []byte) []string {
	var a, b any
	_ = json.Unmarshal(recorded, &a) // a body that is not JSON is nil, which differs from every other one
	_ = json.Unmarshal(got, &b)
	return compare("", a, b)
}

func compare(path string, recorded, got any) (out []string) {
	if a, b := typeOf(recorded), typeOf(got); a != b {
		return []string{fmt.Sprintf("%s is %s in the recording and %s in the simulation", path, a, b)}
	}
	switch r := recorded.(type) {
	case map[string]any:
		g := got.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(r)) {
			if inner, has := g[k]; has {
				out = append(out, compare(path+"."+k, r[k], inner)...)
			} else {
				out = append(out, path+"."+k+" is missing in the simulation")
			}
		}
		for _, k := range slices.Sorted(maps.Keys(g)) {
			if _, has := r[k]; !has {
				out = append(out, path+"."+k+" is not in the recording")
			}
		}
	case []any: // the first rows
		if g := got.([]any); len(r) > 0 && len(g) > 0 {
			return compare(path+"[0]", r[0], g[0])
		} else if len(r) > 0 {
			return []string{path + " has no row in the simulation"}
		}
	}
	return out
}

// typeOf returns the type of a value, and of a time its unit.
func typeOf(v any) string {
	n, isNumber := v.(float64)
	switch {
	case isNumber && n >= 1e12 && n < 1e14:
		return "a time in ms"
	case isNumber && n >= 1e9 && n < 1e11:
		return "a time in s"
	}
	return fmt.Sprintf("%T", v)
}
