// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

const (
	formerFlavor = "rds.mysql.n1.xlarge.4"
	largerFlavor = "rds.mysql.n1.2xlarge.4"
)

// lookedAt returns a case whose last look was that long ago. It found a cause and the date of the cap.
func lookedAt(age time.Duration) autopilot.Case {
	c := cases.Quiet()
	at := *autopilot.Seconds(c.Now.Add(-age))
	c.Status.Insight = &v1alpha1.Insight{
		LookTime: at, Cause: &v1alpha1.Cause{Name: v1alpha1.CauseData, Time: at},
		Cap: &v1alpha1.CapForecast{MaxGB: 4000, Time: at},
	}
	return c
}

// requested is the alteration that we decided on the larger flavor that long ago, and it is not completed.
func requested(age time.Duration) cases.Alteration {
	return func(c *autopilot.Case) {
		c.Status.Pending = cases.IntentTo(v1alpha1.KindFlavor, formerFlavor, largerFlavor, age)
		c.Status.Pending.Metrics = []v1alpha1.Metric{v1alpha1.MetricCPU}
	}
}

// resized is the alteration that our last change of flavor was decided and ended that long ago.
func resized(decided, ended time.Duration, outcome v1alpha1.Outcome) cases.Alteration {
	return func(c *autopilot.Case) {
		at := cases.Ago(decided)
		c.Status.Changes = slices.Insert(c.Status.Changes, 0, v1alpha1.Change{
			Kind: v1alpha1.KindFlavor, By: v1alpha1.ByAutopilot, From: formerFlavor, To: largerFlavor,
			Metrics: []v1alpha1.Metric{v1alpha1.MetricCPU}, DecisionTime: &at, CompletionTime: cases.Ago(ended), Outcome: outcome,
		})
	}
}

// known is the alteration that the load of the larger flavor was read that long ago.
func known(age time.Duration, before, after bool) cases.Alteration {
	return func(c *autopilot.Case) {
		f := &v1alpha1.FlavorInsight{To: largerFlavor, Time: *autopilot.Seconds(c.Now.Add(-age))}
		if before {
			f.Before = &v1alpha1.Load{CPUPercent: "95.0"}
		}
		if after {
			f.After = &v1alpha1.Load{CPUPercent: "50.0"}
		}
		c.Status.Insight.Flavor = f
	}
}

func TestDueNowReadsEachPartOnce(t *testing.T) {
	const completed = v1alpha1.OutcomeCompleted
	minute, hour := time.Minute, time.Hour
	all := func(alterations ...cases.Alteration) cases.Alteration {
		return func(c *autopilot.Case) {
			for _, alter := range alterations {
				alter(c)
			}
		}
	}
	failed := func(part string) cases.Alteration {
		return func(c *autopilot.Case) {
			at := &c.Status.Insight.LookTime
			switch part {
			case "cause":
				c.Status.Insight.Cause.FailedTime = at
			case "cap":
				c.Status.Insight.Cap.FailedTime = at
			case "flavor":
				c.Status.Insight.Flavor.FailedTime = at
			}
		}
	}
	held := func(c *autopilot.Case) {
		c.Status.Held = []v1alpha1.Held{{Kind: v1alpha1.KindVolume, SinceTime: *autopilot.Seconds(c.Now.Add(-5 * hour))}}
	}
	grown := func(age time.Duration) cases.Alteration {
		return func(c *autopilot.Case) { c.Status.Changes = []v1alpha1.Change{cases.GrownVolume("90", "100", age)} }
	}
	never := func(c *autopilot.Case) { c.Status.Insight = nil }
	for _, tc := range []struct {
		name  string
		look  time.Duration // age of the last one
		alter cases.Alteration
		want  Due
	}{
		{"nothing has happened", 2 * hour, all(), Due{}},
		{"no look yet", 0, never, Due{Cap: true}},

		{"a growth was requested", hour, cases.PendingVolume(minute), Due{Cause: true}},
		{"a growth was requested within an hour of the last look", hour - time.Second, cases.PendingVolume(minute), Due{}},
		{"the cause of the growth was read", hour, cases.PendingVolume(hour + minute), Due{}},
		{"the cause of the growth could not be read", hour, all(cases.PendingVolume(hour+minute), failed("cause")), Due{Cause: true}},
		{"WAL filled the volume an hour ago", hour + time.Second, func(c *autopilot.Case) {
			c.Status.Insight.Cause.Name = v1alpha1.CauseWAL
		}, Due{Cause: true}},
		{"a growth was completed", 2 * hour, grown(hour), Due{Cause: true}},
		{"a growth was completed before the last look", 2 * hour, grown(2*hour + minute), Due{}},
		{"a growth was completed 3 hours ago", 4 * hour, grown(3 * hour), Due{}},
		{"a growth is held", hour, held, Due{}},
		{"a growth is held, and the cause is older than an hour", hour + minute, held, Due{Cause: true}},

		{"a flavor was requested", hour, requested(minute), Due{Load: true}},
		{"the load before it was read", hour, all(requested(hour+minute), known(hour, true, false)), Due{}},
		{"the load before it has no data", hour, all(requested(hour+minute), known(hour, false, false)), Due{}},
		{"the load before it could not be read", hour, all(requested(hour+minute), known(hour, false, false), failed("flavor")), Due{Load: true}},
		{"the same flavor was requested again", hour, all(requested(minute), known(hour, true, true)), Due{Load: true}},
		{"an older change to the pending flavor is over", hour,
			all(resized(2*hour, 100*minute, completed), requested(hour+minute), known(hour, true, false)), Due{}},
		{"the first hour with the flavor is not over", hour, all(resized(90*minute, 69*minute, completed), known(80*minute, true, false)), Due{}},
		{"the first hour with the flavor is over", hour, all(resized(90*minute, 70*minute, completed), known(80*minute, true, false)), Due{Load: true}},
		{"both loads were read", hour, all(resized(4*hour, 2*hour, completed), known(hour, true, true)), Due{}},
		{"the first hour was 3 hours ago", hour, all(resized(4*hour, 3*hour, completed), known(4*hour-minute, true, false)), Due{}},
		{"the flavor was lost", hour, all(resized(2*hour, 100*minute, v1alpha1.OutcomeLost), known(hour+50*minute, true, false)), Due{}},
		{"another writer changed the flavor", hour, all(resized(2*hour, 100*minute, completed), func(c *autopilot.Case) {
			c.Status.Changes[0].By = v1alpha1.ByOther
		}), Due{}},

		{"the date of the cap is a day old", 24 * hour, all(), Due{Cap: true}},
		{"the date of the cap could not be read", hour, failed("cap"), Due{Cap: true}},
		{"another cap", 2 * hour, func(c *autopilot.Case) { c.Spec.Storage.MaxGB = 500 }, Due{Cap: true}},
		{"the volume has outgrown its cap", 2 * hour, func(c *autopilot.Case) {
			c.Spec.Storage.MaxGB, c.Status.Insight.Cap.MaxGB, c.Instance.VolumeGB = 90, 90, 100
		}, Due{Cap: true}},
		{"a volume grows, and its cap was never read", 0, all(cases.PendingVolume(minute), never), Due{Cause: true}},
		{"a flavor changes, and the cap was never read", 0, all(requested(minute), never), Due{Load: true, Cap: true}},

		{"another object manages the instance", 0, all(never, func(c *autopilot.Case) { c.ClaimedBy = "team-b/db" }), Due{}},
		{"the instance is not known", 0, all(never, func(c *autopilot.Case) { c.Instance = nil }), Due{}},
		{"the instance is being changed", 0, all(never, cases.InStatus("MODIFYING")), Due{}},
		{"the database is full", 0, all(never, cases.InStatus(autopilot.StatusStorageFull)), Due{Cap: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := lookedAt(tc.look)
			tc.alter(&c)
			if got := DueNow(c); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

// A look stores its time in seconds, and a decision its own in microseconds.
func TestDueNowReadsTheCauseOnceForADecisionInTheSameSecond(t *testing.T) {
	c := lookedAt(2 * time.Hour)
	c.Now = c.Now.Add(999 * time.Millisecond)
	cases.PendingVolume(-500 * time.Millisecond)(&c)
	c.Status.Insight = Update(c, DueNow(c), History{})
	c.Now = c.Now.Add(lookEvery)
	if due := DueNow(c); due.Cause {
		t.Errorf("due again: %+v", due)
	}
}

// load returns a series of one CPU value a minute over the last hours: before, while and after the flavor changes.
func load(hours int, change, end time.Duration) autopilot.Series {
	return autopilot.Series{"rds001_cpu_util": minutes(cases.Noon(), 60*hours, func(minute int) float64 {
		switch age := time.Duration(60*hours-1-minute) * time.Minute; {
		case age > change:
			return 95
		case age > end:
			return 5
		}
		return 60
	})}
}

func TestUpdateStoresTheHourBeforeTheDecisionAndTheFirstHourWithTheFlavor(t *testing.T) {
	const minute = time.Minute
	before, after := &v1alpha1.Load{CPUPercent: "95.0"}, &v1alpha1.Load{CPUPercent: "60.0"}
	for _, tc := range []struct {
		name  string
		alter cases.Alteration
		load  autopilot.Series
		since time.Duration // ago
		want  [2]*v1alpha1.Load
	}{
		{"just requested", requested(0), load(4, 0, 0), time.Hour, [2]*v1alpha1.Load{before, nil}},
		{"requested 50 minutes ago, and completed since", resized(50*minute, 30*minute, v1alpha1.OutcomeCompleted),
			load(4, 50*minute, 30*minute), 110 * minute, [2]*v1alpha1.Load{before, nil}},
		{"the first hour is over", cases.Both(resized(100*minute, 80*minute, v1alpha1.OutcomeCompleted), known(90*minute, true, false)),
			load(4, 100*minute, 80*minute), 80 * minute, [2]*v1alpha1.Load{before, after}},
		{"both were not read yet", resized(100*minute, 80*minute, v1alpha1.OutcomeCompleted),
			load(4, 100*minute, 80*minute), 160 * minute, [2]*v1alpha1.Load{before, after}},
		{"another flavor ended since", cases.Both(cases.Both(resized(170*minute, 150*minute, v1alpha1.OutcomeCompleted), known(160*minute, true, true)),
			requested(10*minute)), load(4, 10*minute, 0), 70 * minute, [2]*v1alpha1.Load{before, nil}},
		{"decided a week ago", requested(7 * 24 * time.Hour), load(4, 0, 0), 24 * time.Hour, [2]*v1alpha1.Load{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := lookedAt(time.Hour)
			tc.alter(&c)
			if since := cases.Noon().Sub(LoadSince(c)); since != tc.since {
				t.Errorf("series of the last %s, want %s", since, tc.since)
			}
			f := Update(c, DueNow(c), History{Load: tc.load}).Flavor
			if f == nil || f.To != largerFlavor || f.FailedTime != nil || !f.Time.Equal(autopilot.Seconds(c.Now)) {
				t.Fatalf("%+v", f)
			}
			if diff := cmp.Diff(tc.want, [2]*v1alpha1.Load{f.Before, f.After}); diff != "" {
				t.Errorf("before and after:\n%s", diff)
			}
		})
	}
}

func TestUpdateStoresTheFindingsOfTheMetricsInAlarm(t *testing.T) {
	c := lookedAt(time.Hour)
	requested(0)(&c)
	h := History{Load: autopilot.Series{mysqlLockWaits: lastHour(40), mysqlSwap: lastHour(0), mysqlHits: lastHour(99)}}
	next := Update(c, DueNow(c), h)
	want := []v1alpha1.Finding{{
		Metric: v1alpha1.MetricCPU, Reason: "LockBound", Message: "40 sessions wait for locks, and the instance has 8 vCPUs",
	}}
	if diff := cmp.Diff(want, next.Flavor.Findings); diff != "" {
		t.Error(diff)
	}
	resized(80*time.Minute, 70*time.Minute, v1alpha1.OutcomeCompleted)(&c)
	c.Status.Pending, c.Status.Insight = nil, next
	c.Now = c.Now.Add(time.Hour)
	if again := Update(c, Due{Load: true}, History{}); len(again.Flavor.Findings) != 1 {
		t.Errorf("the hour after the change replaced the findings: %+v", again.Flavor)
	}
}

func TestUpdateKeepsTheFormerResultOfAFailedRead(t *testing.T) {
	c := lookedAt(25 * time.Hour)
	cases.Both(resized(80*time.Minute, 70*time.Minute, v1alpha1.OutcomeCompleted), known(75*time.Minute, true, false))(&c)
	c.Status.Insight.Cause = &v1alpha1.Cause{Name: v1alpha1.CauseWAL, Time: c.Status.Insight.LookTime}
	due, former := Due{Cause: true, Load: true, Cap: true}, c.Status.Insight.DeepCopy()
	down := errors.New("Cloud Eye does not answer")
	next := Update(c, due, History{CauseErr: down, LoadErr: down, UsedErr: down})
	want, now := former.DeepCopy(), autopilot.Seconds(c.Now)
	want.LookTime = *now
	want.Cause.FailedTime, want.Flavor.FailedTime, want.Cap.FailedTime = now, now, now
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("after the failure:\n%s", diff)
	}
	if diff := cmp.Diff(former, c.Status.Insight); diff != "" {
		t.Errorf("the case was modified:\n%s", diff)
	}
	c.Status.Insight = next
	if again := DueNow(c); again.Any() {
		t.Errorf("a failed look is repeated within the hour: %+v", again)
	}
	c.Now = c.Now.Add(lookEvery)
	if again := DueNow(c); !again.Load || !again.Cap {
		t.Errorf("a failed look is not repeated after an hour: %+v", again)
	}
	next = Update(c, due, History{})
	if next.Cause.FailedTime != nil || next.Flavor.FailedTime != nil || next.Cap.FailedTime != nil {
		t.Errorf("a successful look keeps the failure: %+v", next)
	}
}

func TestUpdateRemembersAFirstReadThatFailed(t *testing.T) {
	c := cases.Quiet()
	cases.PendingVolume(time.Minute)(&c)
	c.Status.Overtaken = cases.IntentTo(v1alpha1.KindFlavor, formerFlavor, largerFlavor, time.Minute)
	down := errors.New("Cloud Eye does not answer")
	c.Status.Insight = Update(c, Due{true, true, true}, History{CauseErr: down, LoadErr: down, UsedErr: down})
	i := c.Status.Insight
	if i.Cause.Name != v1alpha1.CauseUnknown || i.Cause.FailedTime == nil || i.Flavor.FailedTime == nil || i.Cap.FailedTime == nil {
		t.Errorf("%+v", i)
	}
	c.Now = c.Now.Add(lookEvery)
	if due := DueNow(c); !due.Cause || !due.Load {
		t.Errorf("not repeated after an hour: %+v", due)
	}
	c.Status.Pending = nil
	if due := DueNow(c); !due.Cap {
		t.Errorf("the cap is not read after an hour: %+v", due)
	}
}

func TestUpdateTreatsImpossibleValuesAsMissing(t *testing.T) {
	c := lookedAt(time.Hour)
	c.Instance.Engine = enginePostgreSQL
	c.Status.Overtaken = cases.IntentTo(v1alpha1.KindFlavor, formerFlavor, largerFlavor, 0)
	for name, value := range map[string]float64{"not a number": math.NaN(), "huge": 1e300, "negative": -1} {
		one := lastHour(value)
		h := History{Used: one, Cause: autopilot.Series{}, Load: autopilot.Series{}}
		for _, m := range CauseMetrics(enginePostgreSQL) {
			h.Cause[m] = one
		}
		for _, m := range LoadMetrics(enginePostgreSQL) {
			h.Load[m] = one
		}
		i := Update(c, Due{true, true, true}, h)
		if i.Cause.Name != v1alpha1.CauseUnknown || i.Cap.ReadOnlyTime != nil || i.Flavor.Before != nil || i.Flavor.Findings != nil {
			t.Errorf("%s: %+v %+v %+v", name, i.Cause, i.Cap, i.Flavor)
		}
	}
}
