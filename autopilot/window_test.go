// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func window(day v1alpha1.Day, start, end string) func(*Case) {
	return func(c *Case) {
		c.Spec.Flavor.Window = &v1alpha1.Window{Days: []v1alpha1.Day{day}, Start: start, End: end, TimeZone: "UTC"}
	}
}

func TestAnAlarmOnWednesdayIsServedInSaturdaysWindow(t *testing.T) {
	c := quiet()
	window("Sat", "01:00", "05:00")(&c)
	activeFor(30 * 24 * time.Hour)(&c)
	at := func(day time.Time, alarm bool) Verdict {
		c.Now, c.Alarms = day, nil
		c.Alarms = []Alarm{{Metric: v1alpha1.MetricCPU, State: v1alpha1.StateOK}}
		if alarm {
			c.Alarms[0].State, c.Alarms[0].Evidence = v1alpha1.StateAlarm, Evidence{Time: day, Percent: 95}
		}
		v := Decide(c)
		c.Status = RecordIntent(c, v)
		return v
	}
	wednesday := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	if v := at(wednesday, true); v.Intent != nil || c.Status.Deferred == nil {
		t.Fatalf("on Wednesday: intent %+v, deferred %+v", v.Intent, c.Status.Deferred)
	}
	v := at(wednesday.Add(time.Hour), false)
	if v.Intent != nil || c.Status.Deferred == nil || v.Again <= 0 {
		t.Fatalf("an hour later: intent %+v, deferred %+v, again in %s", v.Intent, c.Status.Deferred, v.Again)
	}
	v = at(wednesday.Add(time.Hour).Add(v.Again), false)
	if v.Intent == nil || v.Intent.Kind != v1alpha1.KindFlavor || c.Status.Deferred != nil {
		t.Fatalf("when the window opens: intent %+v, deferred %+v", v.Intent, c.Status.Deferred)
	}
}

func TestAWishIsForgotten(t *testing.T) {
	wish := func() Case {
		c := quiet()
		c.Status.Deferred = &v1alpha1.Deferred{
			Metrics: []v1alpha1.Metric{v1alpha1.MetricCPU}, ValuePercent: "95.0",
			FirstTime: metav1.NewTime(noon().Add(-48 * time.Hour)), LastTime: metav1.NewTime(noon().Add(-47 * time.Hour)),
		}
		return c
	}
	if v := Decide(wish()); v.Intent == nil {
		t.Fatalf("without a window it is due: %+v", v)
	}
	for name, alter := range map[string]func(*Case){
		"after a week":              func(c *Case) { c.Now = c.Now.Add(8 * 24 * time.Hour) },
		"when the flavor changed":   func(c *Case) { c.Status.Changes = []v1alpha1.Change{completedFlavor(time.Hour)} },
		"when the metric is off":    func(c *Case) { off := false; c.Spec.Flavor.CPU.Enabled = &off },
		"when autopilot is off":     func(c *Case) { c.Enabled = false },
		"in mode Off":               func(c *Case) { c.Mode = v1alpha1.ModeOff },
		"when the instance is gone": func(c *Case) { c.Instance = nil },
	} {
		c := wish()
		alter(&c)
		if v := Decide(c); v.Intent != nil {
			t.Errorf("%s: %+v", name, v.Intent)
		}
	}
}

func TestWindow(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	berlin := func(day v1alpha1.Day, start, end string) v1alpha1.Window {
		return v1alpha1.Window{Days: []v1alpha1.Day{day}, Start: start, End: end, TimeZone: "Europe/Berlin"}
	}
	for _, tc := range []struct {
		name  string
		w     v1alpha1.Window
		now   string
		opens time.Duration
	}{
		{"open", berlin("Sat", "01:00", "05:00"), "2026-11-21T02:00:00+01:00", 0},
		{"at its start", berlin("Sat", "01:00", "05:00"), "2026-11-21T01:00:00+01:00", 0},
		{"at its end it is closed for a week", berlin("Sat", "01:00", "05:00"), "2026-11-21T05:00:00+01:00", 7*24*time.Hour - 4*time.Hour},
		{"an hour before", berlin("Sat", "01:00", "05:00"), "2026-11-21T00:00:00+01:00", time.Hour},
		{"the zone counts, not ours", berlin("Sat", "01:00", "05:00"), "2026-11-21T00:30:00Z", 0},
		{"over midnight, the evening", berlin("Sat", "22:00", "02:00"), "2026-11-21T23:00:00+01:00", 0},
		{"over midnight, the morning after", berlin("Sat", "22:00", "02:00"), "2026-11-22T01:59:00+01:00", 0},
		{"over midnight, over", berlin("Sat", "22:00", "02:00"), "2026-11-22T02:00:00+01:00", 7*24*time.Hour - 4*time.Hour},
		{"a whole day", berlin("Sat", "00:00", "00:00"), "2026-11-21T23:59:00+01:00", 0},
		{"the day the clock goes forward", berlin("Sun", "01:00", "05:00"), "2026-03-29T04:30:00+02:00", 0},
		{"closed by the new clock", berlin("Sun", "01:00", "05:00"), "2026-03-29T05:00:00+02:00", 7*24*time.Hour - 4*time.Hour},
		{"the day the clock goes back", berlin("Sun", "01:00", "05:00"), "2026-10-25T04:59:00+01:00", 0},
		{"an hour longer to wait that night", berlin("Sun", "04:00", "05:00"), "2026-10-25T02:00:00+02:00", 3 * time.Hour},
		{"in the hour that is left out: not that Sunday", berlin("Sun", "02:00", "03:00"), "2027-03-28T15:00:00+02:00", 7*24*time.Hour - 13*time.Hour},
		{"nor at the moment", berlin("Sun", "02:00", "03:00"), "2027-03-28T03:00:00+02:00", 7*24*time.Hour - time.Hour},
		{"nor is it waited for", berlin("Sun", "02:00", "03:00"), "2027-03-27T12:00:00+01:00", 7*24*time.Hour + 13*time.Hour},
		{"begins in that hour: what is left of it", berlin("Sun", "02:30", "03:30"), "2027-03-28T03:00:00+02:00", 0},
		{"and no longer", berlin("Sun", "02:30", "03:30"), "2027-03-28T03:30:00+02:00", 7*24*time.Hour - time.Hour},
		{"ends with that hour: not that Sunday", berlin("Sun", "02:15", "03:00"), "2027-03-28T15:00:00+02:00", 7*24*time.Hour - 13*time.Hour + 15*time.Minute},
		{"ends in that hour: until it begins", berlin("Sun", "01:30", "02:30"), "2027-03-28T01:59:59+01:00", 0},
		{"and not after it", berlin("Sun", "01:30", "02:30"), "2027-03-28T03:00:00+02:00", 7*24*time.Hour - 90*time.Minute},
		{"begins in the hour that comes twice: the second time", berlin("Sun", "02:30", "03:30"), "2026-10-25T02:45:00+02:00", 45 * time.Minute},
		{"ends in it: the first time", berlin("Sun", "01:30", "02:30"), "2026-10-25T02:15:00+01:00", 7*24*time.Hour - 45*time.Minute},
		{"all of it: twice as long", berlin("Sun", "02:00", "03:00"), "2026-10-25T02:59:00+01:00", 0},
		{"a part of it: once", berlin("Sun", "02:15", "02:45"), "2026-10-25T02:30:00+02:00", 45 * time.Minute},
		{"half an hour is left out", v1alpha1.Window{Days: []v1alpha1.Day{"Sun"}, Start: "02:00", End: "02:30", TimeZone: "Australia/Lord_Howe"}, "2026-10-04T15:00:00+11:00", 7*24*time.Hour - 13*time.Hour},
		{"midnight is left out", v1alpha1.Window{Days: []v1alpha1.Day{"Fri"}, Start: "00:30", End: "02:00", TimeZone: "Africa/Cairo"}, "2026-04-23T23:30:00+02:00", 30 * time.Minute},
		{"the day is found after midnight was left out", v1alpha1.Window{Days: []v1alpha1.Day{"Fri"}, Start: "01:00", End: "02:00", TimeZone: "Africa/Cairo"}, "2026-04-23T00:15:00+02:00", 24*time.Hour - 15*time.Minute},
		{"a day is left out", v1alpha1.Window{Days: []v1alpha1.Day{"Fri"}, Start: "01:00", End: "05:00", TimeZone: "Pacific/Apia"}, "2011-12-31T02:00:00+14:00", 6*24*time.Hour - time.Hour},
		{"every day", v1alpha1.Window{Start: "01:00", End: "05:00", TimeZone: "Europe/Berlin"}, "2026-11-18T00:00:00+01:00", time.Hour},
		{"always", v1alpha1.Window{Start: "00:00", End: "00:00", TimeZone: "Europe/Berlin"}, "2026-11-18T00:00:00+01:00", 0},
		{"a time that cannot be read", v1alpha1.Window{Start: "1 o'clock", End: "05:00", TimeZone: "Europe/Berlin"}, "2026-11-18T01:00:00+01:00", maxDeferral},
		{"the zone of the machine", v1alpha1.Window{Start: "00:00", End: "00:00", TimeZone: "Local"}, "2026-11-18T01:00:00+01:00", maxDeferral},
		{"no zone", v1alpha1.Window{Start: "00:00", End: "00:00"}, "2026-11-18T01:00:00+01:00", maxDeferral},
		{"a zone nobody knows", v1alpha1.Window{Days: []v1alpha1.Day{"Sat"}, Start: "00:00", End: "00:00", TimeZone: "No/Where"}, "2026-11-21T02:00:00Z", maxDeferral},
	} {
		if got := untilWindowOpens(tc.w, at(tc.now)); got != tc.opens {
			t.Errorf("%s: opens in %s, want %s", tc.name, got, tc.opens)
		}
	}
}

func TestWishesOfSeveralDaysAreServedTogether(t *testing.T) {
	c := quiet()
	window("Sat", "01:00", "05:00")(&c)
	activeFor(30 * 24 * time.Hour)(&c)
	for i, m := range []v1alpha1.Metric{v1alpha1.MetricCPU, v1alpha1.MetricMemory} {
		c.Now = time.Date(2026, 11, 18+i, 12, 0, 0, 0, time.UTC)
		c.Alarms = []Alarm{{Metric: m, State: v1alpha1.StateAlarm, Evidence: Evidence{Time: c.Now, Percent: 95}}}
		c.Status = RecordIntent(c, Decide(c))
	}
	c.Now, c.Alarms = time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC), nil
	v := Decide(c)
	if v.Intent == nil || len(v.Intent.Metrics) != 2 || v.Intent.To != "rds.mysql.n1.4xlarge.4" || v.Intent.ValuePercent != "95.0" {
		t.Fatalf("intent %+v, want one for the CPU of Wednesday and the memory of Thursday", v.Intent)
	}
}
