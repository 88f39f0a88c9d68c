// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// ruleInput is the body that creates or changes a rule; nil is not given. CES api v1: creating_an_alarm_rule.rst.
type ruleInput struct {
	Name          *string         `json:"alarm_name"`
	Description   *string         `json:"alarm_description"`
	Metric        *Metric         `json:"metric"`
	Condition     *conditionInput `json:"condition"`
	Enabled       *bool           `json:"alarm_enabled"`
	ActionEnabled *bool           `json:"alarm_action_enabled"`
	Level         *int            `json:"alarm_level"`
	Type          *string         `json:"alarm_type"`
	AlarmActions  *[]Action       `json:"alarm_actions"`
	OKActions     *[]Action       `json:"ok_actions"`
}

type conditionInput struct {
	Period           *int     `json:"period"`
	Filter           *string  `json:"filter"`
	Operator         *string  `json:"comparison_operator"`
	Value            *float64 `json:"value"`
	Unit             string   `json:"unit"`
	Count            *int     `json:"count"`
	SuppressDuration int      `json:"suppress_duration"`
}

// apply changes what is given. The result is to be checked.
func (in *ruleInput) apply(r *Rule) error {
	set(&r.Name, in.Name)
	set(&r.Description, in.Description)
	set(&r.Metric, in.Metric)
	set(&r.Enabled, in.Enabled)
	set(&r.ActionEnabled, in.ActionEnabled)
	set(&r.Level, in.Level)
	set(&r.AlarmActions, in.AlarmActions)
	set(&r.OKActions, in.OKActions)
	if in.Type != nil && *in.Type == "RESOURCE_GROUP" {
		return errors.New("alarm_type RESOURCE_GROUP is not simulated")
	}
	set(&r.Type, in.Type)
	if c := in.Condition; c != nil {
		if c.Period == nil || c.Filter == nil || c.Operator == nil || c.Value == nil || c.Count == nil {
			return errors.New("condition is incomplete")
		}
		r.Condition = Condition{
			Period: *c.Period, Filter: *c.Filter, ComparisonOperator: *c.Operator, Value: *c.Value, Unit: c.Unit, Count: *c.Count,
			SuppressDuration: c.SuppressDuration,
		}
	}
	return nil
}

func set[T any](to, given *T) {
	if given != nil {
		*to = *given
	}
}

var (
	ruleName       = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	namespaceName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*\.[A-Za-z][A-Za-z0-9_]*$`)
	metricName     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)
	dimensionName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`)
	dimensionValue = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)
)

func validPeriod(p int) bool {
	return slices.Contains([]int{1, 300, 1200, 3600, 14400, 86400}, p)
}

func validFilter(f string) bool {
	return slices.Contains([]string{"average", "max", "min", "sum", "variance"}, f)
}

func (m Metric) check() error {
	switch {
	case !namespaceName.MatchString(m.Namespace) || len(m.Namespace) > 32:
		return fmt.Errorf("namespace %q is invalid", m.Namespace)
	case !metricName.MatchString(m.MetricName):
		return fmt.Errorf("metric_name %q is invalid", m.MetricName)
	case len(m.Dimensions) == 0 || len(m.Dimensions) > 3:
		return errors.New("dimensions: one to three are needed")
	}
	for _, d := range m.Dimensions {
		if !dimensionName.MatchString(d.Name) || !dimensionValue.MatchString(d.Value) {
			return fmt.Errorf("dimension %q: %q is invalid", d.Name, d.Value)
		}
	}
	return nil
}

// check: CES api v1, creating_an_alarm_rule.rst.
func (r *Rule) check() error {
	if err := r.Metric.check(); err != nil {
		return err
	}
	cond := r.Condition
	switch {
	case !ruleName.MatchString(r.Name):
		return fmt.Errorf("alarm_name %q is invalid", r.Name)
	case len(r.Description) > 256:
		return errors.New("alarm_description is too long")
	case r.Type != "" && !r.ofEvents():
		return fmt.Errorf("alarm_type %q is invalid", r.Type)
	case !validPeriod(cond.Period) && (cond.Period != 0 || !r.ofEvents()):
		return fmt.Errorf("period %d is invalid", cond.Period)
	case !validFilter(cond.Filter):
		return fmt.Errorf("filter %q is invalid", cond.Filter)
	case compare(cond.ComparisonOperator) == nil:
		return fmt.Errorf("comparison_operator %q is invalid", cond.ComparisonOperator)
	case cond.Value < 0:
		return errors.New("value is negative")
	case len(cond.Unit) > 32:
		return errors.New("unit is too long")
	case cond.Count < 1 || cond.Count > 5:
		return fmt.Errorf("count %d is invalid", cond.Count)
	case !slices.Contains([]int{0, 300, 600, 900, 1800, 3600, 10800, 21600, 43200, 86400}, cond.SuppressDuration):
		return fmt.Errorf("suppress_duration %d is invalid", cond.SuppressDuration)
	case r.Level < 1 || r.Level > 4:
		return fmt.Errorf("alarm_level %d is invalid", r.Level)
	case r.ActionEnabled && len(r.AlarmActions) == 0 && len(r.OKActions) == 0:
		return errors.New("alarm_actions or ok_actions is needed")
	case len(r.AlarmActions) > 0 && len(r.OKActions) > 0 && !slices.EqualFunc(r.AlarmActions, r.OKActions, equalActions):
		return errors.New("alarm_actions and ok_actions differ")
	}
	for _, a := range slices.Concat(r.AlarmActions, r.OKActions) {
		if a.Type != "notification" && a.Type != "autoscaling" || len(a.NotificationList) < 1 || len(a.NotificationList) > 5 {
			return errors.New("an action needs the type notification or autoscaling and one to five topics")
		}
		for _, urn := range a.NotificationList {
			if !topicURN.MatchString(urn) {
				return fmt.Errorf("topic %q is invalid", urn)
			}
		}
	}
	return nil
}

// ofEvents reports whether the rule is one of events. Events are not simulated, so it never changes its state.
func (r *Rule) ofEvents() bool { return r.Type == "EVENT.SYS" || r.Type == "EVENT.CUSTOM" }

func equalActions(a, b Action) bool {
	return a.Type == b.Type && slices.Equal(a.NotificationList, b.NotificationList)
}

// compare is nil for an unknown operator.
func compare(operator string) func(a, b float64) bool {
	switch operator {
	case ">":
		return func(a, b float64) bool { return a > b }
	case ">=":
		return func(a, b float64) bool { return a >= b }
	case "<":
		return func(a, b float64) bool { return a < b }
	case "<=":
		return func(a, b float64) bool { return a <= b }
	case "=":
		return func(a, b float64) bool { return a == b }
	case "!=":
		return func(a, b float64) bool { return a != b }
	}
	return nil
}
