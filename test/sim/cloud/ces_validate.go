// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
)

// change replaces the fields of a rule that a body has, and checks the result. It replaces metric, condition and
// actions as a whole, and refuses the keys in fixed. CES api v1: creating_an_alarm_rule.rst,
// modifying_an_alarm_rule.rst.
func (q *call) change(r Rule, fixed ...string) (Rule, error) {
	given := map[string]json.RawMessage{}
	if err := q.decode(&given); err != nil {
		return r, fmt.Errorf("the body is malformed: %w", err)
	}
	for _, key := range fixed {
		if given[key] != nil {
			return r, fmt.Errorf("%s cannot be modified", key)
		}
	}
	have := r
	for key, value := range map[string]any{
		"metric": &r.Metric, "condition": &r.Condition, "alarm_actions": &r.AlarmActions, "ok_actions": &r.OKActions,
	} {
		if given[key] != nil {
			reflect.ValueOf(value).Elem().SetZero() // because decoding merges, and would change the present rule
		}
	}
	if err := q.decode(&r); err != nil {
		return r, fmt.Errorf("the body is malformed: %w", err)
	}
	r.ID, r.State, r.UpdateTime = have.ID, have.State, have.UpdateTime
	return r, r.check()
}

var ruleName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

func validPeriod(p int) bool {
	return slices.Contains([]int{1, 300, 1200, 3600, 14400, 86400}, p)
}

// average is the only simulated filter. Rules with another valid filter are accepted, and never change their state.
const average = "average"

func (m Metric) check() error {
	if m.Namespace == "" || m.MetricName == "" || len(m.Dimensions) == 0 || len(m.Dimensions) > 3 {
		return errors.New("metric: namespace, metric_name and one to three dimensions are needed")
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
	case !validPeriod(cond.Period):
		return fmt.Errorf("period %d is invalid", cond.Period)
	case !slices.Contains([]string{average, "max", "min", "sum", "variance"}, cond.Filter):
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
	case len(r.AlarmActions) > 0 && len(r.OKActions) > 0 && !reflect.DeepEqual(r.AlarmActions, r.OKActions):
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

// compare returns nil for an unknown operator.
func compare(operator string) func(a, b float64) bool {
	return map[string]func(a, b float64) bool{
		">":  func(a, b float64) bool { return a > b },
		">=": func(a, b float64) bool { return a >= b },
		"<":  func(a, b float64) bool { return a < b },
		"<=": func(a, b float64) bool { return a <= b },
		"=":  func(a, b float64) bool { return a == b },
		"!=": func(a, b float64) bool { return a != b },
	}[operator]
}
