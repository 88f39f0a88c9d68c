// SPDX-License-Identifier: Apache-2.0

package simcloud_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

var anyTopic = "urn:smn:eu-de:" + strings.Repeat("0", 32) + ":t"

// with returns a JSON object with some of its keys replaced.
func with(t *testing.T, body, change string) string {
	t.Helper()
	all, changed := map[string]any{}, map[string]any{}
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(change), &changed); err != nil {
		t.Fatal(err)
	}
	for key, value := range changed {
		if inner, is := value.(map[string]any); is {
			maps.Copy(all[key].(map[string]any), inner)
		} else {
			all[key] = value
		}
	}
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// CES api v1: creating_an_alarm_rule.rst, modifying_an_alarm_rule.rst.
func TestCloudEyeRefusesRulesOutsideOfTheDocumentedLimits(t *testing.T) {
	c := loggedIn(t)
	valid := ruleBody(anyTopic, "x", 1)
	id := c.call(201, "POST", ces+"/alarms", valid)["alarm_id"].(string)
	topic := `"urn:smn:eu-de:` + strings.Repeat("1", 32) + `:t"`
	for _, change := range []string{
		`{"alarm_name":"a b"}`, `{"alarm_name":"` + strings.Repeat("a", 129) + `"}`, `{"alarm_name":null}`, `{"condition":null}`,
		`{"condition":{"period":60}}`, `{"condition":{"period":0}}`, `{"condition":{"count":6}}`, `{"condition":{"count":0}}`,
		`{"condition":{"suppress_duration":60}}`, `{"condition":{"filter":"avg"}}`, `{"condition":{"comparison_operator":"=>"}}`,
		`{"condition":{"value":-1}}`, `{"alarm_level":5}`, `{"alarm_actions":null,"ok_actions":null}`,
		`{"ok_actions":[{"type":"notification","notificationList":[` + topic + `]}]}`,
		`{"alarm_actions":[{"type":"mail","notificationList":[` + topic + `]}],"ok_actions":null}`,
		`{"alarm_actions":[{"type":"notification","notificationList":["nonsense"]}],"ok_actions":null}`,
		`{"alarm_actions":[{"type":"notification","notificationList":[` + strings.Repeat(topic+",", 5) + topic + `]}],"ok_actions":null}`,
		`{"metric":null}`, `{"metric":{"dimensions":[]}}`,
	} {
		if status, got := c.raw("POST", ces+"/alarms", with(t, valid, change)); status != 400 {
			t.Errorf("%s: %d %s", change, status, got)
		}
	}
	c.call(400, "PUT", ces+"/alarms/"+id, `{"metric":{"namespace":"SYS.RDS"}}`)
	c.call(400, "PUT", ces+"/alarms/"+id, `{"condition":{"value":3}}`) // only as a whole
	c.call(400, "GET", ces+"/alarms?limit=101", "")
	c.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 1 })
	if got := c.call(403, "POST", ces+"/alarms", valid)["message"].(map[string]any)["code"]; got != "ces.0018" {
		t.Error(got)
	}
	if rules := c.sim.Rules(); len(rules) != 1 || rules[0].Condition.Value != 1 || rules[0].Metric.Dimensions[0].Value != "x" {
		t.Errorf("a refused call had an effect: %+v", rules)
	}
}

// In the minutes 1 to 10 the volume of 40 GB is above the threshold of 75 %. A datapoint is seen when its minute has
// ended.
func TestRuleAlarmsAfterItsCountInARowAndRepeats(t *testing.T) {
	for name, tc := range map[string]struct {
		change string
		delay  time.Duration
		want   string // the minute of each notification
	}{
		"raw data":       {`{"condition":{"count":3}}`, 0, "4:alarm 12:ok"},
		"late data":      {`{"condition":{"count":3}}`, 5 * time.Minute, "9:alarm 17:ok"},
		"five minutes":   {`{"condition":{"period":300}}`, 0, "10:alarm 15:ok"}, // the first average has a low minute
		"with repeats":   {`{"condition":{"suppress_duration":300}}`, 0, "2:alarm 7:alarm 12:ok"},
		"wrong resource": {`{"metric":{"dimensions":[{"name":"rds_instance_id","value":"x"}]}}`, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := loggedIn(t)
			c.sim.Configure(func(s *simcloud.Settings) { s.MetricDelay = tc.delay })
			topic := c.newTopic("a")
			c.sim.Confirm(c.subscribe(topic, "https://example.com/x"))
			c.pass(4 * time.Minute) // minute 0 begins a period of five
			in := c.instance("rds.mysql.c2.medium", 40, 20)
			c.call(201, "POST", ces+"/alarms", with(t, ruleBody(topic, in.ID, 75), tc.change))
			got := []string{}
			for minute := range 26 {
				c.pass(time.Minute)
				switch minute {
				case 0:
					c.use(in.ID, 31)
				case 10:
					c.use(in.ID, 20)
				}
				for _, d := range c.sim.Deliveries()[1+len(got):] {
					var message struct{ Message string }
					var alarm struct {
						Status string `json:"alarm_status"`
					}
					if err := json.Unmarshal(d.Body, &message); err != nil || json.Unmarshal([]byte(message.Message), &alarm) != nil {
						t.Fatalf("%v: %s", err, d.Body)
					}
					got = append(got, fmt.Sprintf("%d:%s", minute, alarm.Status))
				}
			}
			if got := strings.Join(got, " "); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// The example is the one captured message of Open Telekom Cloud.
func TestAlarmMessageHasTheFieldsOfTheCapturedOne(t *testing.T) {
	body, err := os.ReadFile("../../../autopilot/smn/testdata/notification_alarm.json")
	if err != nil {
		t.Fatal(err)
	}
	var captured struct{ Subject, Message string }
	if err := json.Unmarshal(body, &captured); err != nil {
		t.Fatal(err)
	}
	c := loggedIn(t)
	in, err := c.sim.AddInstance(simcloud.Instance{Name: "example-db", Flavor: "rds.mysql.c2.medium", VolumeGB: 40})
	if err != nil {
		t.Fatal(err)
	}
	rule := with(t, ruleBody(anyTopic, in.ID, 85),
		`{"condition":{"period":300,"unit":""},"metric":{"dimensions":[{"name":"rds_instance_id","value":"`+in.Nodes[0].ID+`"}]}}`)
	id := c.call(201, "POST", ces+"/alarms", rule)["alarm_id"].(string)
	var got struct{ Subject, Message string }
	body, err = c.sim.SignedAlarm("", anyTopic, id, 91.37)
	if err := errors.Join(err, json.Unmarshal(body, &got)); err != nil || got.Subject != captured.Subject {
		t.Errorf("%s, %v, want %s", got.Subject, err, captured.Subject)
	}
	for _, message := range []string{captured.Message, got.Message} {
		if !strings.Contains(message, `"comparison_operator":"\u003e="`) {
			t.Error("> is not escaped:", message)
		}
	}
	for _, what := range differences([]byte(captured.Message), []byte(got.Message)) {
		if !strings.HasPrefix(what, "template_variable.DataPoint.") { // its keys are times
			t.Error(what)
		}
	}
}
