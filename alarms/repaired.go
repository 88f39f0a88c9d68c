// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// noteRepaired adds a sentence to the report of repairs.
func (e *ensureRun) noteRepaired(format string, args ...any) {
	e.repaired = append(e.repaired, fmt.Sprintf(format, args...))
}

// noteRemoved reports superfluous rules, if there were any.
func (e *ensureRun) noteRemoved(metric v1alpha1.Metric, rules []otc.Rule) {
	if len(rules) > 0 {
		e.noteRepaired("superfluous %s rules were removed: %d", metric, len(rules))
	}
}

// noteRestored reports the fields of a rule that somebody else had changed, if there were any.
func (e *ensureRun) noteRestored(found, desired otc.Rule, metric v1alpha1.Metric) {
	if fields := e.changedByOthers(found, desired, metric); len(fields) > 0 {
		e.noteRepaired("the %s rule was restored: %s", metric, strings.Join(fields, ", "))
	}
}

// changedByOthers returns the fields that differ, except those that differ because the policy has changed. The
// threshold is compared with the recorded one. Period, count and repeat are not recorded, so their difference counts
// only while policy and threshold are unchanged. All other fields are the same under every policy.
func (e *ensureRun) changedByOthers(found, desired otc.Rule, metric v1alpha1.Metric) []string {
	recorded := float64(ruleOf(e.before, metric).ThresholdPercent)
	return slices.DeleteFunc(differences(found, desired), func(field string) bool {
		switch field {
		case diffThreshold:
			return found.Threshold == recorded
		case diffPeriod, diffCount, diffRepeat:
			return e.desired.Renewed || desired.Threshold != recorded
		case diffTopic:
			return e.before.TopicURN == "" // there was no topic to notify
		}
		return false
	})
}

// The fields of a rule that can be changed, as events name them.
const (
	diffThreshold   = "threshold"
	diffPeriod      = "period"
	diffCount       = "count"
	diffRepeat      = "repeat"
	diffComparison  = "comparison"
	diffEnabled     = "enabled"
	diffTopic       = "topic to notify"
	diffFilter      = "filter"
	diffName        = "name"
	diffDescription = "description"
)

// rawPeriod is the period, in Cloud Eye's API, of data that is not aggregated.
const rawPeriod = 1

// differences returns the fields in which a rule is not as desired. The filter of a rule on raw data is ignored,
// because each period has one datapoint.
func differences(observed, desired otc.Rule) []string {
	var found []string
	for _, d := range []struct {
		field   string
		differs bool
	}{
		{diffThreshold, observed.Threshold != desired.Threshold},
		{diffPeriod, observed.Period != desired.Period},
		{diffCount, observed.Count != desired.Count},
		{diffRepeat, observed.Repeat != desired.Repeat},
		{diffComparison, observed.Comparison != desired.Comparison},
		{diffEnabled, observed.Enabled != desired.Enabled},
		{diffTopic, observed.ActionEnabled != desired.ActionEnabled ||
			!slices.Equal(observed.AlarmActions, desired.AlarmActions) || !slices.Equal(observed.OKActions, desired.OKActions)},
		{diffFilter, observed.Filter != desired.Filter && desired.Period != rawPeriod},
		{diffName, observed.Name != desired.Name},
		{diffDescription, observed.Description != desired.Description},
	} {
		if d.differs {
			found = append(found, d.field)
		}
	}
	return found
}

// harmless reports whether alarms arrive as desired in spite of these differences.
func harmless(differences []string) bool {
	return !slices.ContainsFunc(differences, func(field string) bool {
		return field != diffFilter && field != diffName && field != diffDescription
	})
}
