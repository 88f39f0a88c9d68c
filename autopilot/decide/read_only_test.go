// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// readOnlySince returns status.readOnly of a database that became read-only that long ago.
func readOnlySince(ago time.Duration) *v1alpha1.ReadOnly {
	return &v1alpha1.ReadOnly{SinceTime: *autopilot.Seconds(cases.Noon().Add(-ago))}
}

func TestReadOnlyLastsUntilANewerMeasurementShowsTheDatabaseWritable(t *testing.T) {
	grownFrom := func(from string, age time.Duration) func(*autopilot.Case) {
		return func(c *autopilot.Case) {
			c.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: from, To: "100",
				Outcome: v1alpha1.OutcomeCompleted, CompletionTime: cases.Ago(age)}}
		}
	}
	measured := func(usedGB float64, age time.Duration) autopilot.Evidence {
		return autopilot.Evidence{Time: cases.Noon().Add(-age), UsedGB: usedGB}
	}
	hourAgo := readOnlySince(time.Hour)
	for name, tc := range map[string]struct {
		was   *v1alpha1.ReadOnly
		read  autopilot.Evidence
		alter func(*autopilot.Case)
		want  *v1alpha1.ReadOnly
	}{
		"below the limit":                    {nil, measured(94.9, time.Minute), nil, nil},
		"at the limit":                       {nil, measured(95, time.Minute), nil, readOnlySince(time.Minute)},
		"it lasts at the limit":              {hourAgo, measured(95, time.Minute), nil, hourAgo},
		"it lasts above 87 %":                {hourAgo, measured(87.1, time.Minute), nil, hourAgo},
		"it ends at 87 %":                    {hourAgo, measured(87, time.Minute), nil, nil},
		"the measurement that showed it":     {hourAgo, measured(80, time.Hour), nil, hourAgo},
		"an older measurement":               {hourAgo, measured(80, 2*time.Hour), nil, hourAgo},
		"no measurement":                     {hourAgo, autopilot.Evidence{}, nil, hourAgo},
		"no measurement, and never was":      {nil, autopilot.Evidence{}, nil, nil},
		"no instance":                        {hourAgo, measured(80, time.Minute), func(c *autopilot.Case) { c.Instance = nil }, hourAgo},
		"STORAGE FULL":                       {nil, measured(80, time.Minute), cases.InStatus(autopilot.StatusStorageFull), readOnlySince(0)},
		"STORAGE FULL without a measurement": {nil, autopilot.Evidence{}, cases.InStatus(autopilot.StatusStorageFull), readOnlySince(0)},
		"it lasts in STORAGE FULL":           {hourAgo, measured(80, time.Minute), cases.InStatus(autopilot.StatusStorageFull), hourAgo},
		"the limit of the size at that time": {nil, measured(88, 5*time.Minute), grownFrom("90", time.Minute), readOnlySince(5 * time.Minute)},
		"below the limit of a size long ago": {nil, measured(88, 5*time.Minute), grownFrom("90", time.Hour), nil},
		"a growth has made it writable":      {nil, measured(78, 5*time.Minute), grownFrom("80", time.Minute), nil},
	} {
		c := cases.Quiet()
		c.Status.ReadOnly = tc.was
		if tc.alter != nil {
			tc.alter(&c)
		}
		got := c.ReadOnly(tc.read)
		if (got == nil) != (tc.want == nil) || got != nil && !got.SinceTime.Equal(&tc.want.SinceTime) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestReadOnlyCountsAsAnAlarmInForce(t *testing.T) {
	for name, tc := range map[string]struct {
		usedGB float64
		alter  func(*autopilot.Case, *autopilot.Alarm)
		reason autopilot.Reason // empty if nothing is decided
		to     string
	}{
		"below the threshold":          {86, func(c *autopilot.Case, _ *autopilot.Alarm) { c.Status.ReadOnly = nil }, "", ""},
		"at the limit, and no alarm":   {95, func(c *autopilot.Case, _ *autopilot.Alarm) { c.Status.ReadOnly = nil }, autopilot.ReasonAlarmInForce, "120"},
		"it lasts at 88 %":             {88, func(*autopilot.Case, *autopilot.Alarm) {}, autopilot.ReasonAlarmInForce, "110"},
		"it lasts below the threshold": {141, func(c *autopilot.Case, _ *autopilot.Alarm) { c.Instance.VolumeGB, c.Wanted.VolumeGB = 160, 160 }, autopilot.ReasonAlarmInForce, "180"},
		"in STORAGE FULL":              {96, func(c *autopilot.Case, _ *autopilot.Alarm) { c.Instance.Status = autopilot.StatusStorageFull }, autopilot.ReasonAlarmInForce, "120"},
		"no measurement":               {0, func(_ *autopilot.Case, a *autopilot.Alarm) { a.Evidence = autopilot.Evidence{} }, autopilot.ReasonNoData, ""},
		"the cap":                      {95, func(c *autopilot.Case, _ *autopilot.Alarm) { c.Spec.Storage.MaxGB = 100 }, autopilot.ReasonCapReached, ""},
		"not measured since a growth": {95, func(c *autopilot.Case, _ *autopilot.Alarm) {
			c.Status.Changes = []v1alpha1.Change{{Kind: volume, By: v1alpha1.ByOther, Outcome: v1alpha1.OutcomeCompleted, From: "90", To: "100", CompletionTime: cases.Ago(0)}}
		}, "", ""},
		"in STORAGE FULL, with space": {74, func(c *autopilot.Case, _ *autopilot.Alarm) {
			c.Instance.Status = autopilot.StatusStorageFull
		}, autopilot.ReasonBelowThreshold, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, a := cases.Quiet(), cases.StorageAt(tc.usedGB)
			a.State, c.Status.ReadOnly, c.IsSweep = v1alpha1.StateOK, readOnlySince(time.Hour), true
			tc.alter(&c, &a)
			_, v := walked(cases.With(c, a))
			if tc.reason == "" {
				if len(v.Decisions) > 0 {
					t.Errorf("decided %+v", v.Decisions)
				}
				return
			}
			if len(v.Decisions) != 1 || v.Decisions[0].Reason != tc.reason || v.Decisions[0].To != tc.to {
				t.Fatalf("decided %+v, want %s to %q", v.Decisions, tc.reason, tc.to)
			}
			if c.Status.ReadOnly != nil && !v.Decisions[0].Since.Equal(c.Status.ReadOnly.SinceTime.Time) {
				t.Errorf("since %s", v.Decisions[0].Since)
			}
		})
	}
}

func TestReadOnlyIsWarnedOfOnce(t *testing.T) {
	c := cases.Quiet()
	c.Status.ReadOnly = readOnlySince(time.Hour)
	news := record.UpdateWarnings(c, &c.Status)
	const want = "The database has been read-only since 2026-11-20T11:00:00Z. With 100 GB it is writable again once at most 87 GB are used."
	if len(news) != 1 || news[0].Reason != autopilot.ReasonReadOnly || !strings.HasPrefix(news[0].Message, want) {
		t.Errorf("warned %+v", news)
	}
	if again := record.UpdateWarnings(c, &c.Status); len(again) > 0 {
		t.Errorf("warned twice: %+v", again)
	}
}

func TestMeasurementThatCannotBeTrueIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		value float64
		ahead time.Duration
		want  bool
	}{
		"zero": {0, 0, true}, "as large as the volume": {100, 0, true}, "negative": {-0.1, 0, false},
		"more than the volume": {100.1, 0, false}, "infinite": {math.Inf(1), 0, false}, "not a number": {math.NaN(), 0, false},
		"5 minutes ahead": {50, 5 * time.Minute, true}, "more than 5 minutes ahead": {50, 5*time.Minute + 1, false},
	} {
		if got := (autopilot.Point{Time: cases.Noon().Add(tc.ahead), Value: tc.value}).IsCredible(100, cases.Noon()); got != tc.want {
			t.Errorf("%s: credible %t", name, got)
		}
	}
	for _, percent := range []string{"NaN", "Inf", "-1", "101", "1e300"} {
		a := cases.Signalled(cases.StorageAt(0), v1alpha1.StateAlarm, time.Minute, percent)
		if e := a.EvidenceFromSignal(cases.Quiet()); e.Present() {
			t.Errorf("a signal of %s %%: %+v", percent, e)
		}
	}
	a := cases.Signalled(cases.StorageAt(0), v1alpha1.StateAlarm, -6*time.Minute, "95")
	if e := a.EvidenceFromSignal(cases.Quiet()); e.Present() {
		t.Errorf("a signal 6 minutes ahead: %+v", e)
	}
}
