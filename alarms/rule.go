// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// rule returns the desired rule of a metric; false if the metric needs none.
func (e *ensureRun) rule(metric v1alpha1.Metric) (v1alpha1.DesiredRule, bool) {
	i := slices.IndexFunc(e.desired.Rules, func(r v1alpha1.DesiredRule) bool { return r.Metric == metric })
	if i < 0 {
		return v1alpha1.DesiredRule{}, false
	}
	return e.desired.Rules[i], true
}

// observedRule returns the record of a rule of the cloud that is as desired.
func (e *ensureRun) observedRule(desired v1alpha1.DesiredRule, there otc.Rule) v1alpha1.Rule {
	rule := v1alpha1.Rule{
		Metric: desired.Metric, AlarmID: there.ID, ThresholdPercent: percent(desired.ThresholdPercent),
		Dimension: e.desired.Dimension, State: StateOf(there),
	}
	if !there.UpdateTime.IsZero() {
		since := metav1.NewMicroTime(there.UpdateTime)
		rule.StateTime = &since
	}
	return rule
}

// StateOf returns the state of a rule; empty if Cloud Eye reports a state that is not documented.
func StateOf(r otc.Rule) v1alpha1.State {
	switch s := v1alpha1.State(strings.ToLower(r.State)); s {
	case v1alpha1.StateOK, v1alpha1.StateAlarm, v1alpha1.StateInsufficientData:
		return s
	}
	return ""
}

// percent clamps a number of the cloud to the range of the record, because a conversion alone would wrap around.
func percent(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// targetOf returns the desired rule. While no topic is known, it keeps the actions that the rule has. Ensure has
// checked the metric.
func (e *ensureRun) targetOf(desired v1alpha1.DesiredRule, there otc.Rule) otc.Rule {
	metric, _ := e.metric(desired.Metric)
	dimension, value, _ := strings.Cut(e.desired.Dimension, ":")
	target := otc.Rule{
		ID: there.ID, Name: RuleName(e.name, desired.Metric), Description: e.mark,
		Namespace: otc.MetricNamespace, Metric: metric.CloudEye, Dimension: dimension, DimensionValue: value,
		Period: desired.PeriodSeconds, Count: desired.Count, Repeat: desired.RepeatSeconds,
		Filter: "average", Comparison: ">=", Threshold: float64(desired.ThresholdPercent), Unit: metric.Unit, Level: 2,
		Enabled:       true,
		ActionEnabled: there.ActionEnabled, AlarmActions: there.AlarmActions, OKActions: there.OKActions,
	}
	if topic := e.observed.TopicURN; topic != "" {
		target.ActionEnabled, target.AlarmActions, target.OKActions = true, []string{topic}, []string{topic}
	}
	return target
}

// sameSeries reports whether both rules watch the same metric of the same instance or node.
func sameSeries(observed, desired otc.Rule) bool {
	return observed.Namespace == desired.Namespace && observed.Metric == desired.Metric &&
		observed.Dimension == desired.Dimension && observed.DimensionValue == desired.DimensionValue
}

// rulesOf returns the rules of one database and metric: the recorded one first, then the others by age. Pages may
// shift while they are read. So it requests a recorded rule that is not in the list by its id, lest the rule be
// created twice.
func (a *Alarms) rulesOf(ctx context.Context, listed []otc.Rule, base string, metric v1alpha1.Metric,
	observed v1alpha1.Alarms) ([]otc.Rule, error) {
	name, recordedID := RuleName(base, metric), ruleOf(observed, metric).AlarmID
	// A record alone is no proof. A rule of ours that was renamed still notifies our topic or has our mark.
	isOurs := func(r otc.Rule) bool {
		return r.Name == name || r.ID == recordedID &&
			(observed.TopicURN != "" && slices.Contains(r.AlarmActions, observed.TopicURN) || bearsMarkOf(r.Description, base))
	}
	var ours []otc.Rule
	seen := recordedID == ""
	for _, r := range listed {
		seen = seen || r.ID == recordedID
		if isOurs(r) {
			ours = append(ours, r)
		}
	}
	if !seen {
		r, err := a.options.Cloud.Rule(ctx, recordedID)
		switch {
		case err == nil && isOurs(r):
			ours = append(ours, r)
		case err != nil && !errors.Is(err, otc.ErrNotFound):
			return nil, fmt.Errorf("the %s rule cannot be read: %w", metric, err)
		}
	}
	slices.SortFunc(ours, func(x, y otc.Rule) int {
		switch {
		case x.ID == recordedID:
			return -1
		case y.ID == recordedID:
			return 1
		}
		return strings.Compare(x.ID, y.ID) // ids begin with the time of creation
	})
	return ours, nil
}

func (a *Alarms) deleteRules(ctx context.Context, rules []otc.Rule) error {
	for _, r := range rules {
		if err := a.options.Cloud.DeleteRule(ctx, r.ID); err != nil {
			return fmt.Errorf("the rule %s cannot be deleted: %w", r.Name, err)
		}
		a.forget(r.ID)
	}
	return nil
}
