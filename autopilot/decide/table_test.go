// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// The beginnings of the names of the guards.
const (
	inForce      = "The alarm is in force"
	isOn         = "Autopilot is on"
	isKnown      = "The instance is known"
	hasEvidence  = "A recent measurement"
	storageFirst = "Storage does not grow"
	notPending   = "No change of ours is pending"
	notReverted  = "The cloud did not revert"
	sameFlavor   = "The Rds requests the flavor"
	isActive     = "The instance is ACTIVE"
	flavorsKnown = "The cloud's flavors"
	belowCaps    = "The policy's caps"
	hasLarger    = "A larger flavor"
	cooledDown   = "The cooldown"
	hasEffect    = "Of our last two changes"
	uncontested  = "No other writer"
	windowOpen   = "The window"
	modeAuto     = "The mode"
	notRefused   = "The last refusal"
	hasPlace     = "Fewer flavors"
	inResizeList = "The instance's own resize list"
)

// indexOf returns the index of the guard whose name begins so.
func indexOf(t *testing.T, guards []Guard, name string) int {
	t.Helper()
	i := slices.IndexFunc(guards, func(g Guard) bool { return strings.HasPrefix(g.Name, name) })
	if i < 0 {
		t.Fatalf("no guard %q", name)
	}
	return i
}

// verdictBy returns the verdict by these guards of a walk that reads the facts of the case.
func verdictBy(guards []Guard, c autopilot.Case) autopilot.Verdict {
	c, read := cases.Unread(c)
	return walkBy(context.Background(), guards, &c, read)
}

// reasonBy returns the reason of the first decision by these guards; empty if there is no decision.
func reasonBy(guards []Guard, c autopilot.Case) autopilot.Reason {
	if v := verdictBy(guards, c); len(v.Decisions) > 0 {
		return v.Decisions[0].Reason
	}
	return ""
}

// orders returns, for each two neighbors in the table, a case that both prevent. Every other order of the table reverses at
// least one of these pairs.
func orders() []struct {
	first, second string
	alter         func(*autopilot.Case)
	alarm         autopilot.Alarm
	want, swapped autopilot.Reason
} {
	disk, cpu := cases.StorageAt(92), busyCPU()
	closed := cases.InWindow("Sat", "01:00", "05:00")
	contested := cases.Both(cases.Changed(2*time.Hour, "99.0"), cases.Restored)
	return []struct {
		first, second string
		alter         func(*autopilot.Case)
		alarm         autopilot.Alarm
		want, swapped autopilot.Reason
	}{
		{inForce, isOn, metricOff, cleared(cpu), autopilot.ReasonAlarmCleared, autopilot.ReasonNotEnabled},
		{isOn, isKnown, all(metricOff, claimed), cpu, autopilot.ReasonNotEnabled, autopilot.ReasonInstanceClaimed},
		{isKnown, hasEvidence, claimed, cases.StorageAt(84), autopilot.ReasonInstanceClaimed, autopilot.ReasonBelowThreshold},
		{hasEvidence, notPending, cases.PendingVolume(time.Minute), cases.StorageAt(84), autopilot.ReasonBelowThreshold,
			autopilot.ReasonChangePending},
		{notPending, notReverted, all(cases.PendingVolume(time.Minute), cases.Changed(3*time.Hour, "99.0"),
			cases.RolledBack(2*time.Hour)), cpu, autopilot.ReasonChangePending, autopilot.ReasonRolledBack},
		{notReverted, isActive, all(cases.Changed(3*time.Hour, "99.0"), cases.RolledBack(2*time.Hour),
			cases.InStatus("BACKING UP")), cpu, autopilot.ReasonRolledBack, autopilot.ReasonInstanceBusy},
		{sameFlavor, isActive, all(otherFlavor, cases.InStatus("BACKING UP")), cpu, autopilot.ReasonChangePending,
			autopilot.ReasonInstanceBusy},
		{isActive, flavorsKnown, all(cases.InStatus("BACKING UP"), noCatalogue), cpu, autopilot.ReasonInstanceBusy,
			autopilot.ReasonNoData},
		{flavorsKnown, belowCaps, all(oldFlavor, flavorCap(1)), cpu, autopilot.ReasonNoData, autopilot.ReasonCapReached},
		{belowCaps, hasLarger, flavorCap(8), cpu, autopilot.ReasonCapReached, autopilot.ReasonNoLargerFlavor},
		{hasLarger, cooledDown, all(cases.SoldOut("eu-de-02"), cases.Changed(23*time.Minute, "99.0")), cpu,
			autopilot.ReasonSoldOut, autopilot.ReasonCooldown},
		{cooledDown, hasEffect, all(cases.Changed(23*time.Minute, "94.0"), cases.Changed(60*time.Hour, "97.0")), cpu,
			autopilot.ReasonCooldown, autopilot.ReasonNoEffect},
		{hasEffect, uncontested, all(twoWithoutEffect(), cases.Restored), cpu, autopilot.ReasonNoEffect,
			autopilot.ReasonContested},
		{uncontested, windowOpen, all(contested, closed), cpu, autopilot.ReasonContested, autopilot.ReasonOutsideWindow},
		{windowOpen, modeAuto, all(closed, cases.Recommend), cpu, autopilot.ReasonOutsideWindow, autopilot.ReasonRecommend},
		{modeAuto, notRefused, all(cases.Recommend, cases.RefusedPatch), disk, autopilot.ReasonRecommend,
			autopilot.ReasonRefused},
		{notRefused, hasPlace, all(cases.CloudRefuses(cases.PendingFlavor(time.Minute), autopilot.ReasonQuotaExceeded), noPlace),
			cpu, autopilot.ReasonQuotaExceeded, autopilot.ReasonFleetBrake},
		{hasPlace, inResizeList, all(noPlace, offered()), cpu, autopilot.ReasonFleetBrake, autopilot.ReasonNoLargerFlavor},
	}
}

func TestOrderOfTheTableDecidesWhichReasonWins(t *testing.T) {
	pairs := map[[2]int]bool{}
	for _, tc := range orders() {
		t.Run(tc.first+" before "+tc.second, func(t *testing.T) {
			c := altered(tc.alter, tc.alarm)
			if got := reasonBy(Table(), c); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			guards := Table()
			i, j := indexOf(t, guards, tc.first), indexOf(t, guards, tc.second)
			pairs[[2]int{i, j}] = true
			guards[i], guards[j] = guards[j], guards[i]
			if got := reasonBy(guards, c); got != tc.swapped {
				t.Errorf("swapped: %s, want %s", got, tc.swapped)
			}
		})
	}
	for i := 1; i < len(Table()); i++ {
		first, second := Table()[i-1].Name, Table()[i].Name
		isAlone := strings.HasPrefix(first, storageFirst) || strings.HasPrefix(second, storageFirst) || // needs two alarms
			strings.HasPrefix(first, notReverted) // the Rds requests our flavor, so it requests no other one
		if !isAlone && !pairs[[2]int{i - 1, i}] {
			t.Errorf("no case needs %q before %q", first, second)
		}
	}
}
