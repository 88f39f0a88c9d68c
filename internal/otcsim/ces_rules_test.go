// SPDX-License-Identifier: Apache-2.0

package otcsim

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
)

var anyTopic = "urn:smn:eu-de:" + strings.Repeat("0", 32) + ":t"

func TestRulesAreCreatedChangedAndDeleted(t *testing.T) {
	w := start(t, Options{})
	body := ruleBody("a_storage", Dimension{"rds_cluster_id", "x"}, "rds039_disk_util", condition(1, 5, 900, 75), anyTopic)
	id := w.call(201, "ces", "POST", "/alarms", body)["alarm_id"].(string)
	if !regexp.MustCompile(`^al[0-9A-Za-z]{22}$`).MatchString(id) {
		t.Error(id)
	}
	if other := w.call(201, "ces", "POST", "/alarms", body)["alarm_id"]; other == id {
		t.Error("a name that repeats is no new rule")
	}
	rows := w.call(200, "ces", "GET", "/alarms/"+id, nil)["metric_alarms"].([]any)
	row := rows[0].(map[string]any)
	if row["alarm_state"] != "ok" || row["alarm_level"] != 2.0 || row["alarm_enabled"] != true || row["condition"].(map[string]any)["value"] != 75.0 {
		t.Error(row)
	}
	w.call(204, "ces", "PUT", "/alarms/"+id, map[string]any{"condition": condition(300, 3, 0, 80.5)})
	w.call(204, "ces", "PUT", "/alarms/"+id, map[string]any{"alarm_name": "b", "alarm_description": "d"})
	w.call(204, "ces", "PUT", "/alarms/"+id+"/action", map[string]any{"alarm_enabled": false})
	r := w.Rules()[0]
	if r.Condition != condition(300, 3, 0, 80.5) || r.Name != "b" || r.Description != "d" || r.Enabled || len(r.AlarmActions) != 1 {
		t.Errorf("%+v", r)
	}
	w.call(204, "ces", "DELETE", "/alarms/"+id, nil)
	if out := w.call(404, "ces", "DELETE", "/alarms/"+id, nil); out["http_code"] != "404" || out["message"].(map[string]any)["code"] != "ces.0016" {
		t.Error(out)
	}
	q := w.call(200, "ces", "GET", "/quotas", nil)["quotas"].(map[string]any)["resources"].([]any)[0].(map[string]any)
	if q["used"] != 1.0 || q["quota"] != 1000.0 {
		t.Error(q)
	}
}

func TestRulesAreListedInPagesByTheLastID(t *testing.T) {
	for name, inclusive := range map[string]bool{"after the marker": false, "from the marker": true} {
		t.Run(name, func(t *testing.T) {
			w := start(t, Options{Settings: Settings{StartInclusive: inclusive}})
			for i := range 7 {
				w.call(201, "ces", "POST", "/alarms", ruleBody(fmt.Sprint("r", i), Dimension{"k", "v"}, "m", condition(1, 1, 0, 1), anyTopic))
			}
			var pages []string
			start := ""
			for range 4 {
				out := w.call(200, "ces", "GET", "/alarms?limit=3&start="+start, nil)
				meta, page := out["meta_data"].(map[string]any), ""
				for _, r := range out["metric_alarms"].([]any) {
					page += r.(map[string]any)["alarm_name"].(string)
				}
				pages = append(pages, page)
				if meta["total"] != 7.0 || meta["count"] != float64(len(page)/2) {
					t.Error(meta)
				}
				if m := meta["marker"].(string); m != "" {
					start = m
				}
			}
			want := []string{"r6r5r4", "r3r2r1", "r0", ""}
			if inclusive {
				want = []string{"r6r5r4", "r4r3r2", "r2r1r0", "r0"}
			}
			if fmt.Sprint(pages) != fmt.Sprint(want) {
				t.Errorf("%v, want %v", pages, want)
			}
		})
	}
}

func TestADeletedRuleStillMarksItsPlace(t *testing.T) {
	w := start(t, Options{})
	for i := range 4 {
		w.call(201, "ces", "POST", "/alarms", ruleBody(fmt.Sprint("r", i), Dimension{"k", "v"}, "m", condition(1, 1, 0, 1), anyTopic))
	}
	marker := w.Rules()[1].ID
	if !w.RemoveRule(marker) || w.RemoveRule(marker) {
		t.Error("remove")
	}
	for order, want := range map[string]string{"desc": "r0", "asc": "r2r3"} {
		got := ""
		for _, r := range w.call(200, "ces", "GET", "/alarms?order="+order+"&start="+marker, nil)["metric_alarms"].([]any) {
			got += r.(map[string]any)["alarm_name"].(string)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", order, got, want)
		}
	}
}

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
		"event":                {"alarm_type": "EVENT.SYS"},
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
