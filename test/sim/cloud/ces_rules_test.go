// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"maps"
	"strings"
	"testing"
)

var anyTopic = "urn:smn:eu-de:" + strings.Repeat("0", 32) + ":t"

func TestCloudEyeRefusals(t *testing.T) {
	w := start(t, Options{Settings: Settings{RuleQuota: 1}})
	valid := func() map[string]any {
		return ruleBody("a", Dimension{"k", "v"}, "m", condition(1, 1, 0, 1), anyTopic)
	}
	id := w.call(201, "ces", "POST", "/alarms", valid())["alarm_id"].(string)
	cond := func(change func(*Condition)) Condition {
		c := condition(1, 1, 0, 1)
		change(&c)
		return c
	}
	other := []Action{{Type: "notification", NotificationList: []string{anyTopic + "2"}}}
	for name, change := range map[string]map[string]any{
		"name grammar":         {"alarm_name": "a b"},
		"long name":            {"alarm_name": strings.Repeat("a", 129)},
		"no name":              {"alarm_name": nil},
		"no condition":         {"condition": nil},
		"incomplete condition": {"condition": map[string]any{"period": 1}},
		"period of two":        {"condition": cond(func(c *Condition) { c.Period = 60 })},
		"period of events":     {"condition": cond(func(c *Condition) { c.Period = 0 })},
		"count":                {"condition": cond(func(c *Condition) { c.Count = 6 })},
		"no count":             {"condition": cond(func(c *Condition) { c.Count = 0 })},
		"suppress":             {"condition": cond(func(c *Condition) { c.SuppressDuration = 60 })},
		"filter":               {"condition": cond(func(c *Condition) { c.Filter = "avg" })},
		"operator":             {"condition": cond(func(c *Condition) { c.ComparisonOperator = "=>" })},
		"negative value":       {"condition": cond(func(c *Condition) { c.Value = -1 })},
		"level":                {"alarm_level": 5},
		"no actions":           {"alarm_actions": nil, "ok_actions": nil},
		"actions that differ":  {"ok_actions": other},
		"action type":          {"alarm_actions": []Action{{Type: "mail", NotificationList: []string{anyTopic}}}, "ok_actions": nil},
		"six topics":           {"alarm_actions": []Action{{"notification", []string{anyTopic, anyTopic, anyTopic, anyTopic, anyTopic, anyTopic}}}, "ok_actions": nil},
		"unknown type":         {"alarm_type": "METRIC"},
		"resource group":       {"alarm_type": "RESOURCE_GROUP"},
		"namespace":            {"metric": Metric{"SYS", "m", []Dimension{{"k", "v"}}}},
		"metric name":          {"metric": Metric{"SYS.RDS", "1m", []Dimension{{"k", "v"}}}},
		"dimension value":      {"metric": Metric{"SYS.RDS", "m", []Dimension{{"k", "v:w"}}}},
		"no dimension":         {"metric": Metric{"SYS.RDS", "m", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.on(t)
			body := valid()
			maps.Copy(body, change)
			w.call(400, "ces", "POST", "/alarms", body)
		})
	}
	if out := w.call(403, "ces", "POST", "/alarms", valid()); out["message"].(map[string]any)["code"] != "ces.0018" {
		t.Error(out)
	}
	w.call(400, "ces", "PUT", "/alarms/"+id, map[string]any{"metric": valid()["metric"]})
	w.call(400, "ces", "PUT", "/alarms/"+id, map[string]any{"condition": map[string]any{"value": 3}})
	w.call(400, "ces", "GET", "/alarms?limit=101", nil)
	if r := w.Rules(); len(r) != 1 || r[0].Condition.Value != 1 {
		t.Errorf("a refused call had an effect: %+v", r)
	}
}

// TestRulesOfEventsAreListedAndNeverAlarm: the data would satisfy the rule if it were one of a metric.
func TestRulesOfEventsAreListedAndNeverAlarm(t *testing.T) {
	w := start(t, Options{})
	in := w.newInstance("rds.mysql.c2.medium", 40, Workload{UsedGB: 30})
	body := ruleBody("a", Dimension{"rds_cluster_id", in.ID}, "rds039_disk_util", condition(1, 1, 0, 1), anyTopic)
	metric := w.call(201, "ces", "POST", "/alarms", body)["alarm_id"]
	body["alarm_type"] = "EVENT.CUSTOM"
	event := w.call(201, "ces", "POST", "/alarms", body)["alarm_id"].(string)
	w.call(400, "ces", "PUT", "/alarms/"+event, map[string]any{"alarm_type": "EVENT.SYS"})
	body["condition"] = condition(0, 1, 0, 1)
	w.call(201, "ces", "POST", "/alarms", body)
	w.minutes(5)
	for _, row := range w.call(200, "ces", "GET", "/alarms", nil)["metric_alarms"].([]any) {
		row := row.(map[string]any)
		want := "ok"
		if row["alarm_id"] == metric {
			want = "alarm"
		}
		if _, shown := row["alarm_type"]; shown || row["alarm_state"] != want {
			t.Error(row)
		}
	}
}
