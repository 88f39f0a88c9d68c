// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// A guard that depends on a fact which its row does not declare would decide on a value that was never read.
func TestGuardSeesOnlyTheFactsThatItsRowDeclares(t *testing.T) {
	all := []autopilot.Fact{instance, alarmState, usedSpace, usage, catalogue, sizeWriter, flavorWriter, place, resizeList}
	c, read := cases.Unread(cases.Quiet(cases.StorageAt(92), busyCPU()))
	read(t.Context(), &c, all[1:])
	c.SizeWriter, c.FlavorWriter = "a", "b"
	for _, declared := range [][]autopilot.Fact{nil, all} {
		row := Guard{Facts: declared, check: func(c autopilot.Case, ch change) answer {
			for _, f := range all {
				if c.Has(f) != slices.Contains(declared, f) {
					t.Errorf("%v declared, %s read: %t", declared, f, c.Has(f))
				}
			}
			disk, cpu := ch.alarms[0], c.Alarms[1]
			for i, seen := range []bool{
				c.Instance != nil, disk.State != "", !disk.StateTime.IsZero(), disk.Evidence.Present(), cpu.Evidence.Present(),
				c.Catalogue != nil, c.SizeWriter != "", c.FlavorWriter != "", c.HasPlace, c.Offered != nil, c.IsOffered,
			} {
				if seen != (declared != nil) {
					t.Errorf("%v declared, value %d seen: %t", declared, i, seen)
				}
			}
			return answer{}
		}}
		w := walk{c: c}
		w.ask(row, change{kind: flavor, alarms: c.Alarms})
	}
}

// Each read costs a call and time. Facts of a flavor cost most, and a reserved place is not free for other databases.
func TestWalkNeedsOnlyTheFactsThatDecide(t *testing.T) {
	type needs = []autopilot.Fact
	disk, cpu := cases.StorageAt(92), busyCPU()
	idle := cases.StorageAt(50)
	idle.State = v1alpha1.StateOK
	fresh := cases.WithoutEvidence(cases.WithoutState(cases.Signalled(disk, v1alpha1.StateAlarm, time.Minute, "92")))
	closed := cases.InWindow("Sat", "01:00", "05:00")
	for name, tc := range map[string]struct {
		alter  func(*autopilot.Case)
		alarms []autopilot.Alarm
		want   needs
	}{
		"no alarm":                           {unchanged, nil, nil},
		"an alarm that is not in force":      {unchanged, []autopilot.Alarm{idle}, needs{alarmState}},
		"an ended alarm in a sweep":          {sweep, []autopilot.Alarm{idle}, needs{alarmState, usedSpace}},
		"an ended alarm over the threshold":  {overdue(time.Minute), []autopilot.Alarm{idle}, needs{alarmState, usedSpace}},
		"an ended alarm while read-only":     {cases.ReadOnly, []autopilot.Alarm{idle}, needs{alarmState, usedSpace}},
		"storage grows":                      {unchanged, []autopilot.Alarm{disk}, needs{alarmState, usedSpace}},
		"storage grows, and a CPU alarm":     {unchanged, []autopilot.Alarm{cpu, disk}, needs{alarmState, usedSpace}},
		"Cloud Eye does not know the rule":   {unchanged, []autopilot.Alarm{fresh}, needs{alarmState, usedSpace}},
		"autopilot is off":                   {off(autopilot.ReasonNotEnabled, "The mode is Off"), []autopilot.Alarm{disk, cpu}, needs{alarmState, usedSpace}},
		"storage cannot grow, and CPU":       {cases.Steps(10, 100), []autopilot.Alarm{cpu, disk}, needs{alarmState, usedSpace, usage, catalogue, place, resizeList}},
		"a flavor changes":                   {unchanged, []autopilot.Alarm{cpu}, needs{alarmState, usage, catalogue, place, resizeList}},
		"a CPU alarm below the threshold":    {unchanged, []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 89)}, needs{alarmState, usage}},
		"a CPU alarm in a closed window":     {closed, []autopilot.Alarm{cpu}, needs{alarmState, usage, catalogue}},
		"a CPU alarm in mode Recommend":      {cases.Recommend, []autopilot.Alarm{cpu}, needs{alarmState, usage, catalogue}},
		"a CPU alarm while a change is made": {cases.PendingVolume(time.Minute), []autopilot.Alarm{cpu}, needs{alarmState, usage}},
		"a CPU alarm without a place":        {noPlace, []autopilot.Alarm{cpu}, needs{alarmState, usage, catalogue, place}},
		"a deferred change":                  {cases.Deferred("cpu"), nil, needs{catalogue, place, resizeList}},
		"a size that was reverted":           {cases.LostVolume, []autopilot.Alarm{disk}, needs{alarmState, usedSpace, sizeWriter}},
		"a flavor that was made smaller": {all(cases.Changed(2*time.Hour, "99.0"), cases.Restored), []autopilot.Alarm{cpu},
			needs{alarmState, usage, catalogue, flavorWriter}},
		"a flavor that was restored, and no alarm": {all(cases.Changed(2*time.Hour, "99.0"), cases.Restored), nil,
			needs{flavorWriter}},
	} {
		t.Run(name, func(t *testing.T) {
			c := cases.Quiet(tc.alarms...)
			tc.alter(&c)
			c, read := cases.Unread(c)
			var got needs
			Walk(t.Context(), &c, func(ctx context.Context, c *autopilot.Case, facts []autopilot.Fact) {
				got = append(got, facts...)
				read(ctx, c, facts)
			})
			if !slices.Equal(got, tc.want) {
				t.Errorf("needs %v, want %v", got, tc.want)
			}
		})
	}
}

func TestWalkEndsIfNothingIsRead(t *testing.T) {
	for _, tc := range slices.Concat(rows(), rowsOfOneApply()) {
		c, _ := cases.Unread(tc.build())
		c.Facts, c.Instance = nil, nil
		calls := 0
		v := Walk(t.Context(), &c, func(_ context.Context, _ *autopilot.Case, facts []autopilot.Fact) {
			if calls++; calls > 100 || len(facts) == 0 {
				t.Fatalf("%s: %v in call %d", tc.name, facts, calls)
			}
		})
		if v.Intent != nil || len(c.Facts) > 0 && !errors.Is(c.ReadError(), errNotRead) {
			t.Errorf("%s: %+v, %v, although nothing is known", tc.name, v, c.ReadError())
		}
	}
}

// The status shares its lists with the cache of the API server, so a modified list would change the cache.
func TestDecideDoesNotModifyTheCase(t *testing.T) {
	for _, tc := range slices.Concat(rows(), rowsOfOneApply()) {
		build := func() autopilot.Case {
			c, read := cases.Unread(tc.build())
			read(t.Context(), &c, []autopilot.Fact{
				alarmState, usedSpace, usage, catalogue, sizeWriter, flavorWriter, place, resizeList,
			})
			return c
		}
		c := build()
		Decide(c)
		if diff := cmp.Diff(build(), c, cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) })); diff != "" {
			t.Errorf("%s: modified (-before +after):\n%s", tc.name, diff)
		}
	}
}
