// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func (e *ensureRun) rule(metric v1alpha1.Metric) (v1alpha1.DesiredRule, bool) {
	i := slices.IndexFunc(e.desired.Rules, func(r v1alpha1.DesiredRule) bool { return r.Metric == metric })
	if i < 0 {
		return v1alpha1.DesiredRule{}, false
	}
	return e.desired.Rules[i], true
}

func (e *ensureRun) observedRule(desired v1alpha1.DesiredRule, there otc.Rule) v1alpha1.Rule {
	rule := v1alpha1.Rule{
		Metric: desired.Metric, AlarmID: there.ID, ThresholdPercent: percent(desired.ThresholdPercent),
		Dimension: e.desired.Dimension, State: there.State,
	}
	if !there.UpdateTime.IsZero() {
		since := metav1.NewMicroTime(there.UpdateTime)
		rule.StateTime = &since
	}
	return rule
}

// percent clamps a number of the cloud to the range of the record, because a conversion alone would wrap around.
func percent(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// target returns the desired rule. While no topic is known, it keeps the actions that the rule has.
func (e *ensureRun) target(desired v1alpha1.DesiredRule, there otc.Rule) otc.Rule {
	metric := Metric{}
	if i := e.position(desired.Metric); i >= 0 {
		metric = e.options.Metrics[i]
	}
	dimension, value, _ := strings.Cut(e.desired.Dimension, ":")
	target := otc.Rule{
		ID: there.ID, Name: e.mark.RuleName(desired.Metric), Description: e.mark.String(),
		Namespace: otc.MetricNamespace, Metric: metric.CloudEye, Dimension: dimension, DimensionValue: value,
		Period: desired.PeriodSeconds, Count: desired.Count, Repeat: desired.RepeatSeconds,
		Filter: "average", Comparison: ">=", Threshold: float64(desired.ThresholdPercent), Unit: metric.Unit, Level: 2,
		Enabled:       true,
		ActionEnabled: there.ActionEnabled, AlarmActions: there.AlarmActions, OKActions: there.OKActions,
	}
	if topic := e.desired.TopicURN; topic != "" {
		target.ActionEnabled, target.AlarmActions, target.OKActions = true, []string{topic}, []string{topic}
	}
	return target
}

func sameSeries(observed, desired otc.Rule) bool {
	return observed.Namespace == desired.Namespace && observed.Metric == desired.Metric &&
		observed.Dimension == desired.Dimension && observed.DimensionValue == desired.DimensionValue
}

// rulesOf returns the owner's rules of a metric: the recorded one first, then the others by age. A rule is the owner's
// if two of name, mark and recorded id say so. A person may have changed one of them, and one alone is no proof.
func (e *ensureRun) rulesOf(listed []otc.Rule, metric v1alpha1.Metric) (ours []otc.Rule) {
	name, recordedID := e.mark.RuleName(metric), e.recorded(metric).AlarmID
	for _, r := range listed {
		mark, _ := ParseMark(r.Description)
		mark.Recommends = e.mark.Recommends
		isNamed, isMarked, isRecorded := r.Name == name, mark == e.mark, r.ID == recordedID
		if isNamed && isMarked || isNamed && isRecorded || isMarked && isRecorded {
			ours = append(ours, r)
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
	return ours
}

func (e *ensureRun) recorded(metric v1alpha1.Metric) v1alpha1.Rule {
	for _, r := range e.desired.Recorded.Rules {
		if r.Metric == metric {
			return r
		}
	}
	return v1alpha1.Rule{Metric: metric}
}

// observe replaces the rule of its metric in what is known to exist, or removes it if rule has no AlarmID.
func (e *ensureRun) observe(rule v1alpha1.Rule) {
	rules := slices.DeleteFunc(slices.Clone(e.observed.Rules), func(r v1alpha1.Rule) bool { return r.Metric == rule.Metric })
	if rule.AlarmID != "" {
		rules = append(rules, rule)
	}
	slices.SortFunc(rules, func(x, y v1alpha1.Rule) int { return e.position(x.Metric) - e.position(y.Metric) })
	e.observed.Rules = rules
}

func (e *ensureRun) position(metric v1alpha1.Metric) int {
	return slices.IndexFunc(e.options.Metrics, func(m Metric) bool { return m.Name == metric })
}
