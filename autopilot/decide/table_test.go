// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// decisionBy returns the first decision by these guards on a case with one alarm.
func decisionBy(t *testing.T, guards []Guard, c autopilot.Case) autopilot.Decision {
	t.Helper()
	c, read := cases.Unread(c)
	v := walkBy(context.Background(), guards, &c, read)
	if len(v.Decisions) == 0 {
		t.Fatal("no decision")
	}
	return v.Decisions[0]
}

// Each case is prevented by two neighbors of the table. Every other order of the table reverses at least one of these pairs.
func TestOrderOfTheTableDecidesWhichReasonWins(t *testing.T) {
	disk, cpu := cases.StorageAt(92), busyCPU()
	closed := cases.InWindow("Sat", "01:00", "05:00")
	contested := cases.Both(cases.Changed(2*time.Hour, "99.0"), cases.Restored)
	rolledBack := all(cases.Changed(3*time.Hour, "99.0"), cases.RolledBack(2*time.Hour))
	backup := cases.InStatus("BACKING UP")
	for _, tc := range []struct {
		alter         func(*autopilot.Case)
		alarm         autopilot.Alarm
		first, second autopilot.Reason
	}{
		{metricOff, cleared(cpu), autopilot.ReasonAlarmCleared, autopilot.ReasonNotEnabled},
		{all(metricOff, claimed), cpu, autopilot.ReasonNotEnabled, autopilot.ReasonInstanceClaimed},
		{claimed, cases.StorageAt(84), autopilot.ReasonInstanceClaimed, autopilot.ReasonBelowThreshold},
		{cases.PendingVolume(time.Minute), cases.StorageAt(84), autopilot.ReasonBelowThreshold, autopilot.ReasonChangePending},
		{all(cases.PendingVolume(time.Minute), rolledBack), cpu, autopilot.ReasonChangePending, autopilot.ReasonRolledBack},
		{all(rolledBack, backup), cpu, autopilot.ReasonRolledBack, autopilot.ReasonInstanceBusy},
		{all(otherFlavor, backup), cpu, autopilot.ReasonChangePending, autopilot.ReasonInstanceBusy},
		{all(backup, func(c *autopilot.Case) { c.Catalogue = nil }), cpu, autopilot.ReasonInstanceBusy, autopilot.ReasonNoData},
		{all(oldFlavor, flavorCap(1)), cpu, autopilot.ReasonNoData, autopilot.ReasonCapReached},
		{flavorCap(8), cpu, autopilot.ReasonCapReached, autopilot.ReasonCapReached}, // the second row must not say so
		{all(cases.SoldOut("eu-de-02"), cases.Changed(23*time.Minute, "99.0")), cpu,
			autopilot.ReasonSoldOut, autopilot.ReasonCooldown},
		{all(cases.Changed(23*time.Minute, "94.0"), cases.Changed(60*time.Hour, "97.0")), cpu,
			autopilot.ReasonCooldown, autopilot.ReasonNoEffect},
		{all(cases.Changed(2*time.Hour, "94.0"), cases.Changed(60*time.Hour, "97.0"), cases.Restored), cpu, autopilot.ReasonNoEffect, autopilot.ReasonContested},
		{all(contested, closed), cpu, autopilot.ReasonContested, autopilot.ReasonOutsideWindow},
		{all(closed, cases.Recommend), cpu, autopilot.ReasonOutsideWindow, autopilot.ReasonRecommend},
		{all(cases.Recommend, cases.RefusedPatch), disk, autopilot.ReasonRecommend, autopilot.ReasonRefused},
		{all(cases.CloudRefuses(cases.PendingFlavor(time.Minute), autopilot.ReasonQuotaExceeded), noPlace), cpu,
			autopilot.ReasonQuotaExceeded, autopilot.ReasonFleetBrake},
		{all(noPlace, offered()), cpu, autopilot.ReasonFleetBrake, autopilot.ReasonNoLargerFlavor},
	} {
		t.Run(string(tc.first)+" before "+string(tc.second), func(t *testing.T) {
			c := altered(tc.alter, tc.alarm)
			first := decisionBy(t, Table(), c)
			isFirst := func(g Guard) bool { return g.Name == first.Guard }
			second := decisionBy(t, slices.DeleteFunc(Table(), isFirst), c)
			if first.Reason != tc.first || second.Reason != tc.second {
				t.Errorf("%s, then %s", first.Reason, second.Reason)
			}
		})
	}
}
