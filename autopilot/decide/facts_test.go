// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// TestGuardReadsOnlyItsFacts records which facts each guard asks for, over all cases.
func TestGuardReadsOnlyItsFacts(t *testing.T) {
	want := map[string][]autopilot.Fact{
		inForce: {alarmState, usedSpace}, hasEvidence: {usage, usedSpace}, flavorsKnown: {catalogue}, belowCaps: {catalogue},
		hasLarger: {catalogue}, uncontested: {flavorWriter, sizeWriter}, hasPlace: {place}, inResizeList: {catalogue, resizeList},
	}
	guards, got := Table(), make(map[string]map[autopilot.Fact]bool)
	for i, g := range guards {
		got[g.Name] = make(map[autopilot.Fact]bool)
		guards[i].check = func(w *walk, ch *change) answer {
			read := w.read
			defer func() { w.read = read }()
			w.read = func(f autopilot.Fact) error {
				got[g.Name][f] = true
				return read(f)
			}
			return g.check(w, ch)
		}
	}
	for _, tc := range slices.Concat(rows(), rowsOfOneApply()) {
		verdictBy(guards, tc.build())
	}
	for name, facts := range want {
		g := guards[indexOf(t, guards, name)].Name
		if read := slices.Sorted(maps.Keys(got[g])); !slices.Equal(read, facts) {
			t.Errorf("%s: reads %v, want %v", g, read, facts)
		}
		delete(got, g)
	}
	for name, read := range got {
		if len(read) > 0 {
			t.Errorf("%s: reads %v, want nothing", name, read)
		}
	}
}

// Each read costs a call and time. Facts of a flavor cost most, and a reserved place is not free for other databases.
// Nothing is read for a flavor before storage is decided.
func TestWalkReadsOnlyTheFactsThatDecide(t *testing.T) {
	type facts = []autopilot.Fact
	disk, cpu := cases.StorageAt(92), busyCPU()
	idle := cases.StorageAt(50)
	idle.State = v1alpha1.StateOK
	fresh := cases.WithoutEvidence(cases.WithoutState(cases.Signalled(disk, v1alpha1.StateAlarm, time.Minute, "92")))
	closed := cases.InWindow("Sat", "01:00", "05:00")
	for name, tc := range map[string]struct {
		alter  func(*autopilot.Case)
		alarms []autopilot.Alarm
		want   facts
	}{
		"no alarm":                           {unchanged, nil, nil},
		"an alarm that is not in force":      {unchanged, []autopilot.Alarm{idle}, facts{alarmState}},
		"an ended alarm in a sweep":          {sweep, []autopilot.Alarm{idle}, facts{alarmState, usedSpace}},
		"an ended alarm over the threshold":  {overdue(time.Minute), []autopilot.Alarm{idle}, facts{alarmState, usedSpace}},
		"an ended alarm while read-only":     {cases.ReadOnly, []autopilot.Alarm{idle}, facts{alarmState, usedSpace}},
		"storage grows":                      {unchanged, []autopilot.Alarm{disk}, facts{alarmState, usedSpace}},
		"storage grows, and a CPU alarm":     {unchanged, []autopilot.Alarm{cpu, disk}, facts{alarmState, usedSpace}},
		"Cloud Eye does not know the rule":   {unchanged, []autopilot.Alarm{fresh}, facts{alarmState, usedSpace}},
		"autopilot is off":                   {off(autopilot.ReasonNotEnabled, "The mode is Off"), []autopilot.Alarm{disk, cpu}, facts{alarmState, usedSpace}},
		"storage cannot grow, and CPU":       {cases.Steps(10, 100), []autopilot.Alarm{cpu, disk}, facts{alarmState, usedSpace, usage, catalogue, place, resizeList}},
		"a flavor changes":                   {unchanged, []autopilot.Alarm{cpu}, facts{alarmState, usage, catalogue, place, resizeList}},
		"a CPU alarm below the threshold":    {unchanged, []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 89)}, facts{alarmState, usage}},
		"a CPU alarm in a closed window":     {closed, []autopilot.Alarm{cpu}, facts{alarmState, usage, catalogue}},
		"a CPU alarm in mode Recommend":      {cases.Recommend, []autopilot.Alarm{cpu}, facts{alarmState, usage, catalogue}},
		"a CPU alarm while a change is made": {cases.PendingVolume(time.Minute), []autopilot.Alarm{cpu}, facts{alarmState, usage}},
		"a CPU alarm without a place":        {noPlace, []autopilot.Alarm{cpu}, facts{alarmState, usage, catalogue, place}},
		"a deferred change":                  {cases.Deferred("cpu"), nil, facts{catalogue, place, resizeList}},
		"a size that was reverted":           {cases.LostVolume, []autopilot.Alarm{disk}, facts{alarmState, usedSpace, sizeWriter}},
		"a flavor that was made smaller": {all(cases.Changed(2*time.Hour, "99.0"), cases.Restored), []autopilot.Alarm{cpu},
			facts{alarmState, usage, catalogue, flavorWriter}},
		"a flavor that was restored, and no alarm": {all(cases.Changed(2*time.Hour, "99.0"), cases.Restored), nil,
			facts{flavorWriter}},
	} {
		t.Run(name, func(t *testing.T) {
			c := cases.Quiet(tc.alarms...)
			tc.alter(&c)
			c, read := cases.Unread(c)
			var got facts
			Walk(t.Context(), &c, func(ctx context.Context, c *autopilot.Case, f autopilot.Fact) error {
				got = append(got, f)
				return read(ctx, c, f)
			})
			if !slices.Equal(got, tc.want) {
				t.Errorf("reads %v, want %v", got, tc.want)
			}
		})
	}
}

func TestWalkChangesNothingIfNothingCanBeRead(t *testing.T) {
	errNoAnswer := errors.New("no answer")
	for _, tc := range slices.Concat(rows(), rowsOfOneApply()) {
		c, _ := cases.Unread(tc.build())
		c.Instance = nil
		v := Walk(t.Context(), &c, func(context.Context, *autopilot.Case, autopilot.Fact) error { return errNoAnswer })
		if v.Change != nil || len(c.Facts) > 0 && !errors.Is(c.ReadError(), errNoAnswer) {
			t.Errorf("%s: %+v, %v, although nothing is known", tc.name, v, c.ReadError())
		}
	}
}

// The status shares its lists with the cache of the API server, so a modified list would change the cache.
func TestWalkDoesNotModifyTheStatus(t *testing.T) {
	for _, tc := range slices.Concat(rows(), rowsOfOneApply()) {
		c, read := cases.Unread(tc.build())
		status := c.Status
		Walk(t.Context(), &c, read)
		if diff := cmp.Diff(tc.build().Status, status); diff != "" {
			t.Errorf("%s: modified (-before +after):\n%s", tc.name, diff)
		}
	}
}
