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

func facts() []autopilot.Fact {
	return []autopilot.Fact{
		instance, alarmState, usedSpace, usage, catalogue, sizeWriter, flavorWriter, place, resizeList,
	}
}

// known returns the case with all facts read.
func known(c autopilot.Case) autopilot.Case {
	c, read := cases.Unread(c)
	for _, f := range facts() {
		if !c.Has(f) {
			read(context.Background(), &c, []autopilot.Fact{f})
		}
	}
	return c
}

// eachCase calls do with every case of the tables of this package.
func eachCase(do func(alter func(*autopilot.Case), alarms []autopilot.Alarm)) {
	for _, tc := range slices.Concat(rows(), rowsOfOneApply()) {
		alter := tc.alter
		if alter == nil {
			alter = unchanged
		}
		do(alter, tc.alarms)
	}
	for _, tc := range orders() {
		do(tc.alter, []autopilot.Alarm{tc.alarm})
	}
	for _, tc := range unreadable() {
		do(failing(tc.fact, tc.alter), []autopilot.Alarm{tc.alarm})
	}
	for _, r := range refusalReasons() {
		do(cases.CloudRefuses(cases.PendingVolume(time.Minute), r), storage(92))
	}
}

// A guard that depends on a fact which its row does not declare would decide on what nobody has read.
func TestGuardSeesOnlyTheFactsThatItsRowDeclares(t *testing.T) {
	c := known(cases.Quiet(cases.StorageAt(92), busyCPU()))
	c.ClaimedBy, c.SizeWriter, c.FlavorWriter = "shop/orders", "a", "b"
	sees := map[autopilot.Fact]func(autopilot.Case, []autopilot.Alarm) bool{
		instance: func(c autopilot.Case, _ []autopilot.Alarm) bool { return c.Instance != nil || c.ClaimedBy != "" },
		alarmState: func(_ autopilot.Case, a []autopilot.Alarm) bool {
			return a[0].State != "" || a[1].State != "" || !a[0].StateTime.IsZero()
		},
		usedSpace:    func(_ autopilot.Case, a []autopilot.Alarm) bool { return a[0].Evidence.Present() },
		usage:        func(_ autopilot.Case, a []autopilot.Alarm) bool { return a[1].Evidence.Present() },
		catalogue:    func(c autopilot.Case, _ []autopilot.Alarm) bool { return c.Catalogue != nil },
		sizeWriter:   func(c autopilot.Case, _ []autopilot.Alarm) bool { return c.SizeWriter != "" },
		flavorWriter: func(c autopilot.Case, _ []autopilot.Alarm) bool { return c.FlavorWriter != "" },
		place:        func(c autopilot.Case, _ []autopilot.Alarm) bool { return c.HasPlace },
		resizeList:   func(c autopilot.Case, _ []autopilot.Alarm) bool { return c.Offered != nil || c.IsOffered },
	}
	for _, f := range facts() {
		for _, declares := range []bool{true, false} {
			row := Guard{Facts: facts()}
			if !declares {
				row.Facts = slices.DeleteFunc(row.Facts, func(x autopilot.Fact) bool { return x == f })
			}
			row.check = func(c autopilot.Case, ch change) answer {
				for _, alarms := range [][]autopilot.Alarm{ch.alarms, c.Alarms} {
					if c.Has(f) != declares || sees[f](c, alarms) != declares {
						t.Errorf("%s: declared %t, read %t, seen %t", f, declares, c.Has(f), sees[f](c, alarms))
					}
				}
				return answer{}
			}
			w := walk{c: c}
			w.ask(row, change{kind: flavor, alarms: c.Alarms})
		}
	}
}

func TestRowsDeclareTheirReasonsAndFacts(t *testing.T) {
	given := map[string]map[autopilot.Reason]bool{}
	guards := Table()
	for i, g := range guards {
		given[g.Name] = map[autopilot.Reason]bool{}
		for _, f := range g.Facts {
			if !slices.Contains(facts(), f) {
				t.Errorf("%q declares the unknown fact %q", g.Name, f)
			}
		}
		guards[i].check = func(c autopilot.Case, ch change) answer {
			ans := g.check(c, ch)
			if given[g.Name][ans.reason] = true; ans.reason != "" && !slices.Contains(g.Reasons, ans.reason) {
				t.Errorf("%q gives the reason %s, which its row does not have", g.Name, ans.reason)
			}
			for _, f := range ans.needs {
				if !slices.Contains(g.Facts, f) || c.Has(f) {
					t.Errorf("%q needs %q; its row has %v, and read is %t", g.Name, f, g.Facts, c.Has(f))
				}
			}
			if len(ans.needs) > 0 && (ans.reason != "" || ans.silent) {
				t.Errorf("%q needs %v and objects", g.Name, ans.needs)
			}
			return ans
		}
	}
	eachCase(func(first func(*autopilot.Case), alarms []autopilot.Alarm) {
		c := cases.Quiet(alarms...)
		first(&c)
		verdictBy(guards, c)
		if c.Instance == nil {
			return
		}
		eachCase(func(second func(*autopilot.Case), _ []autopilot.Alarm) {
			c := cases.Quiet(alarms...)
			first(&c)
			second(&c)
			verdictBy(guards, c)
		})
	})
	for _, g := range guards {
		for _, r := range g.Reasons {
			if !given[g.Name][r] {
				t.Errorf("%q declares the reason %s and gives it in no case", g.Name, r)
			}
		}
	}
}

// Each read costs a call and time. Facts of a flavor cost most, and a place is taken from others.
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
		"the same in a sweep":                {sweep, []autopilot.Alarm{idle}, needs{alarmState, usedSpace}},
		"the same over the threshold":        {overdue(time.Minute), []autopilot.Alarm{idle}, needs{alarmState, usedSpace}},
		"the same while read-only":           {cases.ReadOnly, []autopilot.Alarm{idle}, needs{alarmState, usedSpace}},
		"storage grows":                      {unchanged, []autopilot.Alarm{disk}, needs{alarmState, usedSpace}},
		"storage grows, and a CPU alarm":     {unchanged, []autopilot.Alarm{cpu, disk}, needs{alarmState, usedSpace}},
		"Cloud Eye is silent about storage":  {unchanged, []autopilot.Alarm{fresh}, needs{alarmState, usedSpace}},
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
	eachCase(func(alter func(*autopilot.Case), alarms []autopilot.Alarm) {
		c := cases.Quiet(alarms...)
		alter(&c)
		c, _ = cases.Unread(c)
		c.Facts, c.Instance = nil, nil
		calls := 0
		v := Walk(t.Context(), &c, func(_ context.Context, _ *autopilot.Case, facts []autopilot.Fact) {
			if calls++; calls > 100 || len(facts) == 0 {
				t.Fatalf("%v in call %d", facts, calls)
			}
		})
		if v.Intent != nil {
			t.Errorf("%+v, although nothing is known", v)
		}
		for f, err := range c.Facts {
			if !errors.Is(err, errNotRead) {
				t.Errorf("%s: %v", f, err)
			}
		}
	})
}

// unread is a case in which one fact cannot be read.
type unread struct {
	fact  autopilot.Fact
	alter func(*autopilot.Case)
	alarm autopilot.Alarm
	want  autopilot.Reason
}

func unreadable() []unread {
	disk, contested := cases.StorageAt(92), cases.Both(cases.Changed(2*time.Hour, "99.0"), cases.Restored)
	old := cases.Signalled(disk, v1alpha1.StateAlarm, 31*time.Minute, "92")
	return []unread{
		{alarmState, unchanged, old, autopilot.ReasonNoData},
		{usedSpace, unchanged, disk, autopilot.ReasonNoData},
		{usage, unchanged, busyCPU(), autopilot.ReasonNoData},
		{catalogue, unchanged, busyCPU(), autopilot.ReasonNoData},
		{place, unchanged, busyCPU(), autopilot.ReasonFleetBrake},
		{resizeList, unchanged, busyCPU(), autopilot.ReasonNoData},
		{sizeWriter, cases.LostVolume, disk, autopilot.ReasonContested},
		{flavorWriter, contested, busyCPU(), autopilot.ReasonContested},
	}
}

// failing returns the alteration after which a fact cannot be read.
func failing(f autopilot.Fact, alter func(*autopilot.Case)) func(*autopilot.Case) {
	return func(c *autopilot.Case) {
		alter(c)
		c.SetFact(f, errors.New("no answer"))
	}
}

func TestUnreadableFactGivesTheReasonOfItsGuard(t *testing.T) {
	tested := []autopilot.Fact{instance} // the caller reads it before the walk, and ends the round if that fails
	for _, tc := range unreadable() {
		tested = append(tested, tc.fact)
		t.Run(string(tc.fact), func(t *testing.T) {
			c, v := walked(altered(failing(tc.fact, tc.alter), tc.alarm))
			if v.Intent != nil || len(v.Decisions) != 1 || v.Decisions[0].Reason != tc.want {
				t.Errorf("%+v, want %s", v, tc.want)
			}
			if !c.Has(tc.fact) || c.Knows(tc.fact) || c.ReadError() == nil {
				t.Errorf("facts %v", c.Facts)
			}
		})
	}
	for _, f := range facts() {
		if !slices.Contains(tested, f) {
			t.Errorf("no case in which %q cannot be read", f)
		}
	}
}

// What the status refers to is shared with the cache of the API server.
func TestDecideDoesNotModifyTheCase(t *testing.T) {
	eachCase(func(alter func(*autopilot.Case), alarms []autopilot.Alarm) {
		build := func() autopilot.Case {
			c := cases.Quiet(slices.Clone(alarms)...)
			alter(&c)
			return known(c)
		}
		c := build()
		Decide(c)
		if diff := cmp.Diff(build(), c, cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) })); diff != "" {
			t.Errorf("modified (-before +after):\n%s", diff)
		}
	})
}
