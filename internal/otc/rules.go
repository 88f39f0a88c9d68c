// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/opentelekomcloud/gophertelekomcloud/openstack/ces/v1/alarms"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack/ces/v1/quotas"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Rule is an alarm rule of Cloud Eye with one dimension (CES api v1: creating_an_alarm_rule.rst).
type Rule struct {
	ID             string
	Name           string // not unique in the cloud
	Description    string // at most 256 characters
	Namespace      string // such as SYS.RDS
	Metric         string // such as rds039_disk_util
	Dimension      string // name of the dimension, such as rds_cluster_id
	DimensionValue string // such as the instance's id
	Period         int    // seconds; 1 = raw data
	Count          int    // consecutive periods
	Repeat         int    // seconds between repeated notifications while the alarm lasts; 0 = none
	Filter         string // average, max, …
	Comparison     string // >=, …
	Threshold      float64
	Unit           string
	Level          int // 1 critical, 2 major, 3 minor, 4 informational
	Enabled        bool
	ActionEnabled  bool
	AlarmActions   []string // topic URNs
	OKActions      []string
	State          v1alpha1.State // empty if Cloud Eye reports a state that is not documented
	UpdateTime     time.Time      // of the last change of state
}

// Rules returns all rules of the project as of notBefore or later. All callers of the same time share one list: arming
// 500 databases one by one would otherwise list 1,500 rules 500 times. Callers must not modify it.
func (c *Cloud) Rules(ctx context.Context, notBefore time.Time) ([]Rule, error) {
	list, err := c.rules.Get(ctx, project{}, notBefore)
	return list.rules, err
}

// AlarmStates returns the state of every rule of the project by rule id, as of notBefore or later. Callers share the
// map and must not modify it.
func (c *Cloud) AlarmStates(ctx context.Context, notBefore time.Time) (map[string]autopilot.AlarmState, error) {
	list, err := c.rules.Get(ctx, project{}, notBefore)
	return list.states, err
}

// ListRules lists all rules of the project. The API has no filter by name.
func (c *Cloud) ListRules(ctx context.Context) ([]Rule, error) {
	return everyPage(
		func(r alarms.MetricAlarms) string { return r.AlarmId }, ruleOf,
		func(_ int, last string) ([]alarms.MetricAlarms, int, error) {
			page, err := alarms.ListAlarms(c.client(ctx, opListRules),
				alarms.ListAlarmsOpts{Limit: pageSize, Order: "desc", Start: last})
			if err != nil {
				return nil, 0, c.transport.wrapError(opListRules, err)
			}
			return page.MetricAlarms, page.MetaData.Total, nil
		})
}

// Rule reads a rule by its id. The error wraps ErrNotFound if there is none.
func (c *Cloud) Rule(ctx context.Context, id string) (Rule, error) {
	rows, err := alarms.ShowAlarm(c.client(ctx, opGetRule, id), id)
	if err != nil {
		return Rule{}, c.transport.wrapError(opGetRule, err)
	}
	for _, r := range rows {
		if r.AlarmId == id {
			return ruleOf(r), nil
		}
	}
	return Rule{}, c.transport.fault(opGetRule, http.StatusNotFound, errors.New("no alarm rule "+id))
}

// CreateRule creates a rule and returns its id, even if a rule of that name exists. It ignores ID, State and
// UpdateTime. The error wraps ErrQuota at 1,000 rules (CES umn: constraints.rst).
func (c *Cloud) CreateRule(ctx context.Context, r Rule) (string, error) {
	id, err := alarms.CreateAlarm(c.client(ctx, opCreateRule), alarms.CreateAlarmOpts{
		AlarmName: r.Name, AlarmDescription: r.Description, AlarmLevel: r.Level, Condition: r.condition(),
		Metric: alarms.MetricForAlarm{
			Namespace: r.Namespace, MetricName: r.Metric,
			Dimensions: []alarms.MetricsDimension{{Name: r.Dimension, Value: r.DimensionValue}},
		},
		AlarmEnabled: &r.Enabled, AlarmActionEnabled: &r.ActionEnabled,
		AlarmActions: notify(r.AlarmActions), OkActions: notify(r.OKActions),
	})
	if err != nil {
		return "", c.transport.wrapError(opCreateRule, err)
	}
	return id, nil
}

// ModifyRule writes all fields of a rule except metric and dimension, which cannot be changed, and Enabled; see
// EnableRule. The SDK lacks the call (CES api v1: modifying_an_alarm_rule.rst).
func (c *Cloud) ModifyRule(ctx context.Context, id string, r Rule) error {
	body := struct {
		Name          string                `json:"alarm_name,omitempty"`
		Description   string                `json:"alarm_description"`
		Condition     alarms.Condition      `json:"condition"`
		ActionEnabled bool                  `json:"alarm_action_enabled"`
		Level         int                   `json:"alarm_level,omitempty"`
		AlarmActions  []alarms.AlarmActions `json:"alarm_actions"`
		OKActions     []alarms.AlarmActions `json:"ok_actions"`
	}{r.Name, r.Description, r.condition(), r.ActionEnabled, r.Level, notify(r.AlarmActions), notify(r.OKActions)}
	return c.doRequest(ctx, opModifyRule, http.MethodPut, "alarms/"+id, body, nil, id)
}

// EnableRule enables or disables a rule.
func (c *Cloud) EnableRule(ctx context.Context, id string, on bool) error {
	err := alarms.UpdateAlarmAction(c.client(ctx, opEnableRule, id), id, alarms.ModifyAlarmActionRequest{AlarmEnabled: on})
	return c.transport.wrapError(opEnableRule, err)
}

// DeleteRule deletes a rule. A missing rule is no error.
func (c *Cloud) DeleteRule(ctx context.Context, id string) error {
	return c.delete(ctx, opDeleteRule, "alarms", id)
}

// RuleQuota returns the number of alarm rules of the project, and its limit.
func (c *Cloud) RuleQuota(ctx context.Context) (used, quota int, err error) {
	reply, err := quotas.ShowQuotas(c.client(ctx, opGetQuotas)).Extract()
	if err != nil {
		return 0, 0, c.transport.wrapError(opGetQuotas, err)
	}
	for _, r := range reply.Quotas.Resources {
		if r.Type == "alarm" {
			return r.Used, r.Quota, nil
		}
	}
	return 0, 0, c.transport.fault(opGetQuotas, 0, errors.New("the reply contains no quota of alarm rules"))
}

func (c *Cloud) delete(ctx context.Context, op operation, path, id string) error {
	err := c.doRequest(ctx, op, http.MethodDelete, path+"/"+id, nil, nil, id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func (r Rule) condition() alarms.Condition {
	return alarms.Condition{
		Period: r.Period, Filter: r.Filter, ComparisonOperator: r.Comparison, Value: r.Threshold,
		Unit: r.Unit, Count: r.Count, SuppressDuration: r.Repeat,
	}
}

func notify(topics []string) []alarms.AlarmActions {
	if len(topics) == 0 {
		return []alarms.AlarmActions{}
	}
	return []alarms.AlarmActions{{Type: "notification", NotificationList: topics}}
}

func ruleOf(r alarms.MetricAlarms) Rule {
	rule := Rule{
		ID: r.AlarmId, Name: r.AlarmName, Description: r.AlarmDescription,
		Namespace: r.Metric.Namespace, Metric: r.Metric.MetricName,
		Period: r.Condition.Period, Count: r.Condition.Count, Repeat: r.Condition.SuppressDuration,
		Filter: r.Condition.Filter, Comparison: r.Condition.ComparisonOperator,
		Threshold: r.Condition.Value, Unit: r.Condition.Unit, Level: r.AlarmLevel,
		Enabled: r.AlarmEnabled, ActionEnabled: r.AlarmActionEnabled,
		AlarmActions: notified(r.AlarmActions), OKActions: notified(r.OkActions),
	}
	switch s := v1alpha1.State(strings.ToLower(r.AlarmState)); s {
	case v1alpha1.StateOK, v1alpha1.StateAlarm, v1alpha1.StateInsufficientData:
		rule.State = s
	}
	if r.UpdateTime > 0 {
		rule.UpdateTime = time.UnixMilli(r.UpdateTime).UTC()
	}
	if len(r.Metric.Dimensions) == 1 { // our rules have one; the others need no dimension here
		rule.Dimension, rule.DimensionValue = r.Metric.Dimensions[0].Name, r.Metric.Dimensions[0].Value
	}
	return rule
}

func notified(actions []alarms.AlarmActions) []string {
	var topics []string
	for _, a := range actions {
		if a.Type == "notification" {
			topics = append(topics, a.NotificationList...)
		}
	}
	return topics
}
