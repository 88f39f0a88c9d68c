// SPDX-License-Identifier: Apache-2.0

package window

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestUntilOpenFollowsTheClockOfTheZone(t *testing.T) {
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
		{"a time that cannot be read", v1alpha1.Window{Start: "1 o'clock", End: "05:00", TimeZone: "Europe/Berlin"}, "2026-11-18T01:00:00+01:00", Never},
		{"the zone of the machine", v1alpha1.Window{Start: "00:00", End: "00:00", TimeZone: "Local"}, "2026-11-18T01:00:00+01:00", Never},
		{"no zone", v1alpha1.Window{Start: "00:00", End: "00:00"}, "2026-11-18T01:00:00+01:00", Never},
		{"a zone nobody knows", v1alpha1.Window{Days: []v1alpha1.Day{"Sat"}, Start: "00:00", End: "00:00", TimeZone: "No/Where"}, "2026-11-21T02:00:00Z", Never},
	} {
		if got := UntilOpen(tc.w, at(tc.now)); got != tc.opens {
			t.Errorf("%s: opens in %s, want %s", tc.name, got, tc.opens)
		}
	}
}
