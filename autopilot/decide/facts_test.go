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

// eachCase calls do with every case of the tests of sentences and of the table.
func eachCase(do func(alter func(*autopilot.Case), alarms []autopilot.Alarm)) {
	for _, tc := range sentences() {
		alter := tc.alter
		if alter == nil {
			alter = unchanged
		}
		do(alter, tc.alarms)
	}
	for _, tc := range objections() {
		do(tc.alter, []autopilot.Alarm{tc.alarm})
	}
	for _, tc := range orders() {
		do(tc.alter, []autopilot.Alarm{tc.alarm})
	}
	for _, tc := range lateChoices() {
		do(tc.alter, []autopilot.Alarm{busyCPU()})
	}
	for _, tc := range unreadable() {
		do(failing(tc.fact, tc.alter), []autopilot.Alarm{tc.alarm})
	}
	for _, r := range refusalReasons() {
		refused := cases.CloudRefuses(cases.PendingVolume(time.Minute), r)
		do(refused, []autopilot.Alarm{cases.StorageAt(92)})
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

// lateChoices returns cases in which the catalogue has a larger flavor, and the instance's own list has none.
func lateChoices() []struct {
	name  string
	alter func(*autopilot.Case)
	want  autopilot.Reason
} {
	const next, largest = "rds.mysql.n1.4xlarge.4", "rds.mysql.n1.8xlarge.4"
	return []struct {
		name  string
		alter func(*autopilot.Case)
		want  autopilot.Reason
	}{
		{"nothing larger", offered("rds.mysql.n1.large.4"), autopilot.ReasonNoLargerFlavor},
		{"one above the cap", all(flavorCap(16), offered(largest)), autopilot.ReasonCapReached},
		{"one that is sold out", all(soldOutFlavor(largest), offered(largest)), autopilot.ReasonSoldOut},
		{"one above the replica", all(cases.WithReplica("PostgreSQL"), offered(largest), func(c *autopilot.Case) {
			c.Instance.Replicas[0].VCPUs, c.Instance.Replicas[0].MemoryGB = 16, 64
		}), autopilot.ReasonReplicaTooSmall},
		{"the next one", offered(next), autopilot.ReasonAlarmInForce},
	}
}

// soldOutFlavor returns the alteration that one flavor is sold out.
func soldOutFlavor(code string) func(*autopilot.Case) {
	return func(c *autopilot.Case) {
		for i := range c.Catalogue {
			if c.Catalogue[i].Code == code {
				c.Catalogue[i].Zones["eu-de-01"] = "sellout"
			}
		}
	}
}

func TestResizeListRepeatsTheChoice(t *testing.T) {
	for _, tc := range lateChoices() {
		t.Run(tc.name, func(t *testing.T) {
			v := verdictOf(altered(tc.alter, busyCPU()))
			if d := v.Decisions[0]; d.Reason != tc.want {
				t.Errorf("%s: %s, want %s", d.Reason, d.Message, tc.want)
			}
		})
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
	sweep := func(c *autopilot.Case) { c.IsSweep = true }
	for name, tc := range map[string]struct {
		alter  func(*autopilot.Case)
		alarms []autopilot.Alarm
		want   needs
	}{
		"no alarm":                           {unchanged, nil, nil},
		"an alarm that is not in force":      {unchanged, []autopilot.Alarm{idle}, needs{alarmState}},
		"the same in a sweep":                {sweep, []autopilot.Alarm{idle}, needs{alarmState, usedSpace}},
		"the same over the threshold":        {overThreshold, []autopilot.Alarm{idle}, needs{alarmState, usedSpace}},
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

func overThreshold(c *autopilot.Case) {
	c.Status.OverThresholdSince = autopilot.Seconds(c.Now.Add(-time.Minute))
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
	says  string
}

func unreadable() []unread {
	disk, cpu := cases.StorageAt(92), busyCPU()
	old := cases.Signalled(disk, v1alpha1.StateAlarm, 31*time.Minute, "92")
	contested := cases.Both(cases.Changed(2*time.Hour, "99.0"), cases.Restored)
	return []unread{
		{alarmState, unchanged, old, autopilot.ReasonNoData,
			"Cloud Eye does not report whether the storage alarm of 2026-11-20T11:29:00Z is still in force"},
		{usedSpace, unchanged, disk, autopilot.ReasonNoData,
			"The storage alarm is in force, but Cloud Eye has no measurement to decide on"},
		{usage, unchanged, cpu, autopilot.ReasonNoData,
			"The CPU alarm is in force, but Cloud Eye has no measurement to decide on"},
		{catalogue, unchanged, cpu, autopilot.ReasonNoData, "The cloud's flavors could not be read"},
		{place, unchanged, cpu, autopilot.ReasonFleetBrake,
			"The flavor waits, because as many flavors as --max-flavor-changes allows are changing in the cluster"},
		{resizeList, unchanged, cpu, autopilot.ReasonNoData,
			"The flavors that the instance can change to could not be read"},
		{sizeWriter, cases.LostVolume, disk, autopilot.ReasonContested,
			"Another writer reset the size from 110 to 100 GB (once). Retrying at longer intervals"},
		{flavorWriter, contested, cpu, autopilot.ReasonContested,
			"Another writer replaced flavor rds.mysql.n1.2xlarge.4 by rds.mysql.n1.xlarge.4. The flavor stays for 7 days unless the spec changes"},
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
			if v.Intent != nil || len(v.Decisions) != 1 || v.Decisions[0].Reason != tc.want || v.Decisions[0].Message != tc.says {
				t.Errorf("%+v\nwant %s: %q", v, tc.want, tc.says)
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
