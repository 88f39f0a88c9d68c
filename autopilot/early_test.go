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
