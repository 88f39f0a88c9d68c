// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func (c *Cloud) cesOperations() []operation {
	const base = "/ces/V1.0/{project}"
	op := func(name, method, path string, run func(*call) reply) operation {
		return operation{service: "ces", name: name, pattern: method + " " + base + path, run: run}
	}
	return []operation{
		op("CreateAlarm", "POST", "/alarms", c.createAlarm),
		op("ListAlarms", "GET", "/alarms", c.listAlarms),
		op("ShowAlarm", "GET", "/alarms/{alarm}", c.onRule(c.showAlarm)),
		op("UpdateAlarm", "PUT", "/alarms/{alarm}", c.onRule(c.updateAlarm)),
		op("SwitchAlarm", "PUT", "/alarms/{alarm}/action", c.onRule(c.switchAlarm)),
		op("DeleteAlarm", "DELETE", "/alarms/{alarm}", c.onRule(c.deleteAlarm)),
		op("ShowQuotas", "GET", "/quotas", c.showQuotas),
		op("ListMetrics", "GET", "/metrics", c.listMetrics),
		op("BatchMetricData", "POST", "/batch-query-metric-data", c.batchMetricData),
	}
}

// cesError: CES api, common_parameters and error_codes.rst. Where no code of a service is known, the code is the
// status.
func cesError(status int, code, format string, args ...any) reply {
	text := strconv.Itoa(status)
	if code == "" {
		code = text
	}
	return jsonReply(status, fields{"http_code": text, "message": fields{"details": fmt.Sprintf(format, args...), "code": code}})
}

func (c *Cloud) onRule(run func(*call, *rule) reply) func(*call) reply {
	return func(q *call) reply {
		r := c.rule(q.PathValue("alarm"))
		if r == nil {
			return cesError(http.StatusNotFound, "ces.0016", "The alarm rule does not exist")
		}
		return run(q, r)
	}
}

func (c *Cloud) createAlarm(q *call) reply {
	made, err := q.change(Rule{
		Enabled: true, ActionEnabled: true, Level: 2, State: cmp.Or(c.settings.NewRule, StateOK), UpdateTime: q.now.UnixMilli(),
	})
	if err != nil {
		return cesError(http.StatusBadRequest, "", "%v", err)
	}
	if len(c.rules) >= c.settings.RuleQuota {
		return cesError(http.StatusForbidden, "ces.0018", "The number of alarm rules has reached the quota")
	}
	c.ruleSeq++
	// Missing data counts from the creation of the rule.
	r := &rule{Rule: made, seq: c.ruleSeq, newest: c.visible(c.sampled) - 1}
	r.ID = alarmID()
	c.ruleSeqs[r.ID] = r.seq
	c.rules = append(c.rules, r)
	return jsonReply(http.StatusCreated, fields{"alarm_id": r.ID})
}

// alarmID returns "al" and 22 letters and digits. CES api v2.
func alarmID() string {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	b := make([]byte, 22)
	_, _ = rand.Read(b) // never fails
	for i := range b {
		b[i] = alphabet[int(b[i])%len(alphabet)]
	}
	return "al" + string(b)
}

// listAlarms returns a page, which begins after the rule named by start. CES api v1: querying_alarm_rules.rst.
func (c *Cloud) listAlarms(q *call) reply {
	limit, ok := q.number("limit", 100, 1, 100)
	order, start := q.URL.Query().Get("order"), q.URL.Query().Get("start")
	if !ok || order != "" && order != "asc" && order != "desc" {
		return cesError(http.StatusBadRequest, "", "limit or order is invalid")
	}
	rows := slices.Clone(c.rules)
	if order != "asc" {
		slices.Reverse(rows)
	}
	if start != "" {
		seq, known := c.ruleSeqs[start] // a rule that was deleted between two pages still marks its place
		if !known {
			return cesError(http.StatusBadRequest, "", "start is invalid")
		}
		rows = slices.DeleteFunc(rows, func(r *rule) bool {
			if r.seq == seq {
				return !c.settings.StartInclusive
			}
			return (r.seq < seq) == (order == "asc")
		})
	}
	rows = rows[:min(limit, len(rows))]
	out, marker := []Rule{}, ""
	for _, r := range rows {
		out, marker = append(out, c.listed(r)), r.ID
	}
	return jsonReply(http.StatusOK, fields{"metric_alarms": out, "meta_data": fields{"count": len(out), "marker": marker, "total": len(c.rules)}})
}

func (c *Cloud) showAlarm(_ *call, r *rule) reply {
	return jsonReply(http.StatusOK, fields{"metric_alarms": []Rule{c.listed(r)}})
}

// listed returns a rule as the API lists it.
func (c *Cloud) listed(r *rule) Rule {
	out := r.Rule
	if c.settings.Normalizes && out.Condition.Period == 1 {
		out.Condition.Filter = "raw"
	}
	if c.settings.StateInCapitals {
		out.State = RuleState(strings.ToUpper(string(out.State)))
	}
	if c.settings.UpdateTimeIsEvaluation {
		out.UpdateTime = c.tickTime(c.sampled).UnixMilli()
	}
	return out
}

// updateAlarm refuses changes of metric and type. alarm_enabled has a call of its own. CES api v1:
// modifying_an_alarm_rule.rst.
func (c *Cloud) updateAlarm(q *call, r *rule) reply {
	changed, err := q.change(r.Rule, "metric", "alarm_enabled")
	if err != nil {
		return cesError(http.StatusBadRequest, "", "%v", err)
	}
	r.Rule = changed
	if bytes.Contains(q.body, []byte(`"condition"`)) && c.settings.RewrittenRule != "" {
		r.set(c.settings.RewrittenRule, q.now)
	}
	return reply{status: http.StatusNoContent}
}

func (c *Cloud) switchAlarm(q *call, r *rule) reply {
	var in struct {
		Enabled *bool `json:"alarm_enabled"`
	}
	if err := q.decode(&in); err != nil || in.Enabled == nil {
		return cesError(http.StatusBadRequest, "", "alarm_enabled is mandatory")
	}
	r.Enabled = *in.Enabled
	return reply{status: http.StatusNoContent}
}

func (c *Cloud) deleteAlarm(_ *call, r *rule) reply {
	remove(&c.rules, func(other *rule) bool { return other == r })
	return reply{status: http.StatusNoContent}
}

func (c *Cloud) showQuotas(*call) reply {
	return jsonReply(http.StatusOK, fields{"quotas": fields{"resources": []fields{
		{"type": "alarm", "used": len(c.rules), "quota": c.settings.RuleQuota, "unit": ""},
	}}})
}
