// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// The fields of a rule that can be changed.
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

// harmless reports whether a rule does its job in spite of these differences. Claims depend on its name and not on its
// description, which a cloud may cut.
func harmless(differences []string) bool {
	isHarmful := func(field string) bool { return field != diffFilter && field != diffDescription }
	return !slices.ContainsFunc(differences, isHarmful)
}

// ineffective is a repair of a rule that the cloud accepted without effect. It is kept in memory only. After a restart
// it costs a few API calls and one repeated event.
type ineffective struct {
	remaining string // the fields of the rule that still differ
	at        time.Time
}

// noteRepair stores how the cloud still differs after a repair of a rule; empty means that it took effect.
func (a *Alarms) noteRepair(id, remaining string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if remaining == "" {
		delete(a.ineffective, id)
		return
	}
	a.ineffective[id] = ineffective{remaining, a.options.Now()}
}

// ineffectiveSince returns when a repair was last tried that left this difference; the zero time means never.
func (a *Alarms) ineffectiveSince(id, remaining string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.ineffective[id]; i.remaining == remaining {
		return i.at
	}
	return time.Time{}
}
