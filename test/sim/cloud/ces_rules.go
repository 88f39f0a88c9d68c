// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"slices"
	"time"
)

// RuleState is the alarm_state of a rule.
type RuleState string

// States of a rule. CES api v1: querying_alarm_rules.rst.
const (
	StateOK               RuleState = "ok"
	StateAlarm            RuleState = "alarm"
	StateInsufficientData RuleState = "insufficient_data"
)

// Dimension names what a metric is measured on.
type Dimension struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Metric names a series of datapoints.
type Metric struct {
	Namespace  string      `json:"namespace"`
	MetricName string      `json:"metric_name"`
	Dimensions []Dimension `json:"dimensions"`
}

// Condition decides when a rule is in alarm.
type Condition struct {
	Period             int     `json:"period"` // seconds; 1 is raw data
	Filter             string  `json:"filter"`
	ComparisonOperator string  `json:"comparison_operator"`
	Value              float64 `json:"value"`
	Unit               string  `json:"unit,omitempty"`
	Count              int     `json:"count"`
	SuppressDuration   int     `json:"suppress_duration"` // seconds; 0 notifies once
}

// Action names the topics to notify.
type Action struct {
	Type             string   `json:"type"`
	NotificationList []string `json:"notificationList"`
}

// Rule is an alarm rule, as Cloud Eye v1 lists it.
type Rule struct {
	Name          string    `json:"alarm_name"`
	Description   string    `json:"alarm_description"`
	Metric        Metric    `json:"metric"`
	Condition     Condition `json:"condition"`
	Enabled       bool      `json:"alarm_enabled"`
	Level         int       `json:"alarm_level"`
	ActionEnabled bool      `json:"alarm_action_enabled"`
	AlarmActions  []Action  `json:"alarm_actions"`
	OKActions     []Action  `json:"ok_actions"`
	ID            string    `json:"alarm_id"`
	// UpdateTime is when State changed last, in milliseconds.
	UpdateTime int64     `json:"update_time"`
	State      RuleState `json:"alarm_state"`
}

type rule struct {
	Rule
	seq      int64
	newest   int64 // tick of the newest visible datapoint, or the last tick before the rule was created
	notified int64 // tick of the last alarm notification
}

func (r *rule) set(state RuleState, at time.Time) {
	if r.State != state {
		r.State, r.UpdateTime = state, at.UnixMilli()
	}
}

// Rules returns all alarm rules, oldest first.
func (c *Cloud) Rules() []Rule { return copies(c, &c.rules, (*rule).snapshot) }

func (r *rule) snapshot() Rule {
	out := r.Rule
	out.Metric.Dimensions = slices.Clone(r.Metric.Dimensions)
	out.AlarmActions, out.OKActions = slices.Clone(r.AlarmActions), slices.Clone(r.OKActions)
	return out
}

func (c *Cloud) rule(id string) *rule {
	return find(c.rules, func(r *rule) bool { return r.ID == id })
}

// RemoveRule deletes a rule as a person at the console does. It returns false if there is none.
func (c *Cloud) RemoveRule(id string) bool {
	c.lock()
	defer c.mu.Unlock()
	return remove(&c.rules, func(r *rule) bool { return r.ID == id })
}
