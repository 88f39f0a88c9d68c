// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// beforeAlarm is storage without an alarm, with 86 of 100 GB used.
func beforeAlarm(perHour float64) Alarm {
	a := storageAt(86)
	a.State = v1alpha1.StateOK
	a.Evidence.Filling = Filling{Known: true, Middle: perHour, Fast: perHour}
	a.Evidence.Steady = true
	return a
}

func TestVolumeGrowsBeforeAnAlarmThatWouldComeTooLate(t *testing.T) {
	grown := func(age time.Duration, percent string) func(*Case, *Alarm) {
		return func(c *Case, _ *Alarm) {
			at := ago(age)
			c.Status.Changes = append(c.Status.Changes, v1alpha1.Change{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot,
				From: "90", To: "100", ValuePercent: percent, DecisionTime: &at, CompletionTime: at, Outcome: v1alpha1.OutcomeCompleted})
		}
	}
	for _, tc := range []struct {
		name    string
		perHour float64
		change  func(*Case, *Alarm)
		reason  Reason // empty if nothing is decided
		to      string
	}{
		{"20 GB/h", 20, nil, ReasonAlarmInForce, "120"},
		{"17 GB/h reaches 94.5 GB", 17, nil, "", ""},
		{"Recommend", 20, func(c *Case, _ *Alarm) { c.Spec.Storage.Early = v1alpha1.ModeRecommend }, ReasonRecommend, "120"},
		{"Off", 20, func(c *Case, _ *Alarm) { c.Spec.Storage.Early = v1alpha1.ModeOff }, "", ""},
		{"mode Recommend", 20, func(c *Case, _ *Alarm) { c.Mode = v1alpha1.ModeRecommend }, ReasonRecommend, "120"},
		{"mode Off", 20, func(c *Case, _ *Alarm) { c.Mode = v1alpha1.ModeOff }, "", ""},
		{"something was freed", 20, func(_ *Case, a *Alarm) { a.Evidence.Steady = false }, "", ""},
		{"the median does not rise", 20, func(_ *Case, a *Alarm) { a.Evidence.Filling.Middle = 0 }, "", ""},
		{"59 % used", 80, func(_ *Case, a *Alarm) { a.Evidence.UsedGB = 59 }, "", ""},
		{"60 % used", 80, func(_ *Case, a *Alarm) { a.Evidence.UsedGB = 60 }, ReasonAlarmInForce, "150"},
		{"no measurement", 20, func(_ *Case, a *Alarm) { a.Evidence.Time = time.Time{} }, "", ""},
		{"old measurement", 20, func(_ *Case, a *Alarm) { a.Evidence.Time = noon().Add(-time.Hour) }, ReasonStaleEvidence, ""},
		{"an early step 23 hours ago", 20, grown(23*time.Hour, "80.0"), "", ""},
		{"an early step 24 hours ago", 20, grown(24*time.Hour, "80.0"), ReasonAlarmInForce, "120"},
		{"a step at an alarm", 20, grown(time.Hour, "91.0"), ReasonAlarmInForce, "120"},
		{"two steps at alarms", 20, func(c *Case, a *Alarm) { grown(time.Hour, "91.0")(c, a); grown(2*time.Hour, "91.0")(c, a) }, "", ""},
		{"a step for the same used space a week ago", 20, grown(7*24*time.Hour, "95.6"), "", ""},
		{"maxGB", 20, func(c *Case, _ *Alarm) { c.Spec.Storage.MaxGB = 110 }, ReasonAlarmInForce, "110"},
		{"at maxGB", 20, func(c *Case, _ *Alarm) { c.Spec.Storage.MaxGB = 100 }, ReasonCapReached, ""},
		{"a change in progress", 20, func(c *Case, _ *Alarm) { pendingVolume(time.Minute)(c) }, ReasonChangePending, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, c := beforeAlarm(tc.perHour), quiet()
			if tc.change != nil {
				tc.change(&c, &a)
			}
			v := Decide(c.with(a))
			if tc.reason == "" {
				if len(v.Decisions) > 0 || v.Intent != nil {
					t.Fatalf("%+v, want no decision", v)
				}
				return
			}
			if len(v.Decisions) != 1 || v.Decisions[0].Reason != tc.reason || v.Decisions[0].To != tc.to {
				t.Fatalf("%+v, want %s to %q", v.Decisions, tc.reason, tc.to)
			}
			if !v.Decisions[0].Since.IsZero() {
				t.Error("the time of an alarm that did not come")
			}
		})
	}
}

func TestEarlyGuardIsTheFirstConditionThatPreventsAnEarlyStep(t *testing.T) {
	grown := func(c *Case, percent string) {
		at := ago(time.Hour)
		c.Status.Changes = append(c.Status.Changes, v1alpha1.Change{Kind: v1alpha1.KindVolume, From: "90", To: "100",
			ValuePercent: percent, DecisionTime: &at, CompletionTime: at, Outcome: v1alpha1.OutcomeCompleted})
	}
	for name, tc := range map[string]struct {
		change func(*Case, *Alarm)
		guard  EarlyGuard
		text   string
	}{
		"nothing prevents it": {func(*Case, *Alarm) {}, "", ""},
		"space was freed": {func(_ *Case, a *Alarm) { a.Evidence.Steady = false },
			EarlySpaceFreed, "space was freed in the last 6 hours, or measurements are missing"},
		"two steps at alarms, and space was freed": {func(c *Case, a *Alarm) {
			a.Evidence.Steady = false
			grown(c, "91.0")
			grown(c, "91.0")
		}, EarlyRecentSteps, "the volume grew 2 times in the last 24 hours"},
		"an early step": {func(c *Case, _ *Alarm) { grown(c, "80.0") },
			EarlyRecentStep, "the volume grew without an alarm in the last 24 hours"},
		"a step of another writer": {func(c *Case, _ *Alarm) { grown(c, "") },
			EarlyRecentStep, "the volume grew without an alarm in the last 24 hours"},
		"a step for the same used space": {func(c *Case, _ *Alarm) { grown(c, "96.0") },
			EarlyAlreadyGrown, "the volume has grown for this used space already"},
		"slow, after a step": {func(c *Case, a *Alarm) { grown(c, "80.0"); a.Evidence.Filling.Fast = 17 },
			EarlySlow, "not read-only within 30 minutes at this rate"},
		"slow and less than 60 %": {func(_ *Case, a *Alarm) { a.Evidence.UsedGB = 59 },
			EarlyLowUse, "less than 60 % used"},
		"not rising at 59 %": {func(_ *Case, a *Alarm) { a.Evidence.UsedGB, a.Evidence.Filling.Middle = 59, 0 },
			EarlyNotRising, "the used space did not rise for half of the last hour, or its rate is not known"},
		"not a number": {func(_ *Case, a *Alarm) { a.Evidence.UsedGB = math.NaN() },
			EarlyLowUse, "less than 60 % used"},
		"at the threshold": {func(_ *Case, a *Alarm) { a.Evidence.UsedGB = 90 },
			EarlyAtThreshold, "the used space is at its threshold already"},
		"Off at the threshold": {func(c *Case, a *Alarm) {
			c.Spec.Storage.Early = v1alpha1.ModeOff
			a.Evidence.UsedGB = 90
		}, EarlyOff, "spec.storage.early or the mode is Off"},
		"no measurement": {func(_ *Case, a *Alarm) { a.Evidence.Time = time.Time{} },
			EarlyNoData, "the used space is not known"},
		"no instance": {func(c *Case, _ *Alarm) { c.Instance = nil },
			EarlyNoData, "the used space is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			a, c := beforeAlarm(20), quiet()
			tc.change(&c, &a)
			if got := c.EarlyGuard(a.Evidence); got != tc.guard || got.Text() != tc.text {
				t.Errorf("%q %q, want %q %q", got, got.Text(), tc.guard, tc.text)
			}
			mayGrow := tc.guard == "" || tc.guard == EarlySpaceFreed
			if c.MayGrowEarly(a.Evidence) != mayGrow {
				t.Errorf("MayGrowEarly is not %t", mayGrow)
			}
		})
	}
}

func TestEarlyStepSaysWhy(t *testing.T) {
	d := Decide(quiet().with(beforeAlarm(20))).Decisions[0]
	const want = "Storage 100 → 120 GB: 86.0 % used, alarm at 90 %, filling at 20 GB/h. At this rate the database is " +
		"read-only before 2026-11-20T12:29:00Z, and the alarm would come too late"
	if d.Message != want {
		t.Errorf("%q\nwant %q", d.Message, want)
	}
}

func TestNothingFreed(t *testing.T) {
	series := func(value func(i int) float64) []Point {
		var p []Point
		for i := range 73 {
			p = append(p, Point{noon().Add(time.Duration(i-72) * FreedPeriod), value(i)})
		}
		return p
	}
	rising := func(i int) float64 { return 70 + 0.2*float64(i) }
	for name, tc := range map[string]struct {
		used []Point
		want bool
	}{
		"a rise":                       {series(rising), true},
		"at rest":                      {series(func(int) float64 { return 70 }), true},
		"half a percent less":          {series(func(i int) float64 { return 70 - 0.35*float64(i%2) }), true},
		"a clean-up":                   {series(func(i int) float64 { return rising(i) - 5*float64(i/40) }), false},
		"a slow clean-up":              {series(func(i int) float64 { return 70 - 0.05*float64(i) }), false},
		"a clean-up before that":       {append([]Point{{noon().Add(-7 * time.Hour), 95}}, series(rising)...), true},
		"an hour is missing":           {append(series(rising)[:30], series(rising)[42:]...), false},
		"the beginning is missing":     {series(rising)[10:], false},
		"the end is missing":           {series(rising)[:60], false},
		"no measurement":               {nil, false},
		"a negative value":             {series(func(i int) float64 { return rising(i) - 100*float64(i/72) }), false},
		"a value that is not a number": {series(func(i int) float64 { return rising(i) + math.Log(float64(-i/30)) }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NothingFreed(tc.used, noon()); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}
