// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// noteMended adds a sentence to what was mended.
func (e *ensureRun) noteMended(format string, args ...any) {
	e.mended = append(e.mended, fmt.Sprintf(format, args...))
}

// noteRemoved reports rules that do not belong there, if there were any.
func (e *ensureRun) noteRemoved(metric v1alpha1.Metric, rules []otc.Rule) {
	if len(rules) > 0 {
		e.noteMended("superfluous %s rules were removed: %d", metric, len(rules))
	}
}

// noteRestored reports what of a rule somebody else had changed.
func (e *ensureRun) noteRestored(found, desired otc.Rule, metric v1alpha1.Metric) {
	if what := e.changedByOthers(found, desired, metric); len(what) > 0 {
		e.noteMended("the %s rule was brought in line: %s", metric, strings.Join(what, ", "))
	}
}

// changedByOthers leaves out what differs because the policy asks for something else now. The threshold is held against the
// recorded one; what is not recorded and follows the policy counts only while the threshold stays; the rest is the same
// under every policy.
func (e *ensureRun) changedByOthers(found, desired otc.Rule, metric v1alpha1.Metric) []string {
	known := float64(ruleOf(e.before, metric).ThresholdPercent)
	return slices.DeleteFunc(differences(found, desired), func(what string) bool {
		switch what {
		case diffThreshold:
			return found.Threshold == known
		case diffPeriod, diffCount, diffRepeat:
			return e.desired.Renewed || desired.Threshold != known
		case diffTopic:
			return e.before.TopicURN == "" // it had no topic to notify
		}
		return false
	})
}

// What of a rule can be changed, in the words of the event.
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

const rawPeriod = 1 // Cloud Eye's word for raw data

// differences names what of a rule is not as wanted. A filter means nothing for raw data: each period is one datapoint.
func differences(observed, desired otc.Rule) []string {
	var found []string
	for _, d := range []struct {
		what string
		is   bool
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
		if d.is {
			found = append(found, d.what)
		}
	}
	return found
}

// harmless reports whether alarms come as wanted in spite of these differences.
func harmless(differences []string) bool {
	return !slices.ContainsFunc(differences, func(what string) bool {
		return what != diffFilter && what != diffName && what != diffDescription
	})
}
