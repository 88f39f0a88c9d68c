package alarms

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// tell adds a sentence to what was mended.
func (e *ensuring) tell(format string, args ...any) {
	e.mended = append(e.mended, fmt.Sprintf(format, args...))
}

// tellRemoved tells of rules that do not belong there, if there were any.
func (e *ensuring) tellRemoved(metric string, rules []otc.Rule) {
	if len(rules) > 0 {
		e.tell("superfluous %s rules were removed: %d", metric, len(rules))
	}
}

// tellMended tells what of a rule somebody else had changed.
func (e *ensuring) tellMended(found, want otc.Rule, metric string) {
	if what := e.byOthers(found, want, metric); len(what) > 0 {
		e.tell("the %s rule was brought in line: %s", metric, strings.Join(what, ", "))
	}
}

// byOthers leaves out what differs because we want it otherwise now. The threshold is held against the recorded one; what is
// not recorded and follows the policy counts only while the threshold stays; the rest is the same under every policy.
func (e *ensuring) byOthers(found, want otc.Rule, metric string) []string {
	known := float64(e.known.rule(metric).ThresholdPercent)
	return slices.DeleteFunc(differences(found, want), func(what string) bool {
		switch what {
		case diffThreshold:
			return found.Threshold == known
		case diffPeriod, diffCount, diffRepeat:
			return e.want.Renewed || want.Threshold != known
		case diffTopic:
			return e.known.TopicURN == "" // it had no topic to notify
		}
		return false
	})
}

// What of a rule can be changed, in the words that people are told.
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
func differences(have, want otc.Rule) []string {
	var found []string
	for _, d := range []struct {
		what string
		is   bool
	}{
		{diffThreshold, have.Threshold != want.Threshold},
		{diffPeriod, have.Period != want.Period},
		{diffCount, have.Count != want.Count},
		{diffRepeat, have.Repeat != want.Repeat},
		{diffComparison, have.Comparison != want.Comparison},
		{diffEnabled, have.Enabled != want.Enabled},
		{diffTopic, have.ActionEnabled != want.ActionEnabled ||
			!slices.Equal(have.AlarmActions, want.AlarmActions) || !slices.Equal(have.OKActions, want.OKActions)},
		{diffFilter, have.Filter != want.Filter && want.Period != rawPeriod},
		{diffName, have.Name != want.Name},
		{diffDescription, have.Description != want.Description},
	} {
		if d.is {
			found = append(found, d.what)
		}
	}
	return found
}

// harmless says whether alarms come as wanted in spite of these differences.
func harmless(differences []string) bool {
	return !slices.ContainsFunc(differences, func(what string) bool {
		return what != diffFilter && what != diffName && what != diffDescription
	})
}
