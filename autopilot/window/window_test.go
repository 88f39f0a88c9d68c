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
		opens time.Duration // zones_test.go tests the skipped hours
	}{
		{"open", berlin("Sat", "01:00", "05:00"), "2026-11-21T02:00:00+01:00", 0},
		{"at its start", berlin("Sat", "01:00", "05:00"), "2026-11-21T01:00:00+01:00", 0},
		{"at its end", berlin("Sat", "01:00", "05:00"), "2026-11-21T05:00:00+01:00", 7*24*time.Hour - 4*time.Hour},
		{"an hour before its start", berlin("Sat", "01:00", "05:00"), "2026-11-21T00:00:00+01:00", time.Hour},
		{"open by the clock of its zone", berlin("Sat", "01:00", "05:00"), "2026-11-21T00:30:00Z", 0},
		{"over midnight, in the evening", berlin("Sat", "22:00", "02:00"), "2026-11-21T23:00:00+01:00", 0},
		{"over midnight, in the morning", berlin("Sat", "22:00", "02:00"), "2026-11-22T01:59:00+01:00", 0},
		{"over midnight, at its end",
			berlin("Sat", "22:00", "02:00"), "2026-11-22T02:00:00+01:00", 7*24*time.Hour - 4*time.Hour},
		{"a whole day", berlin("Sat", "00:00", "00:00"), "2026-11-21T23:59:00+01:00", 0},
		{"the wait includes the repeated hour",
			berlin("Sun", "04:00", "05:00"), "2026-10-25T02:00:00+02:00", 3 * time.Hour},
		{"wholly within a skipped hour, so only a week later",
			berlin("Sun", "02:00", "03:00"), "2027-03-27T12:00:00+01:00", 7*24*time.Hour + 13*time.Hour},
		{"begins within a repeated hour, so at its second time",
			berlin("Sun", "02:30", "03:30"), "2026-10-25T02:45:00+02:00", 45 * time.Minute},
		{"ends within a repeated hour, so at its first time",
			berlin("Sun", "01:30", "02:30"), "2026-10-25T02:15:00+01:00", 7*24*time.Hour - 45*time.Minute},
		{"the whole repeated hour is open twice", berlin("Sun", "02:00", "03:00"), "2026-10-25T02:59:00+01:00", 0},
		{"on a skipped day, so only a week later",
			v1alpha1.Window{Days: []v1alpha1.Day{"Fri"}, Start: "01:00", End: "05:00", TimeZone: "Pacific/Apia"}, "2011-12-31T02:00:00+14:00", 6*24*time.Hour - time.Hour},
		{"every day",
			v1alpha1.Window{Start: "01:00", End: "05:00", TimeZone: "Europe/Berlin"}, "2026-11-18T00:00:00+01:00", time.Hour},
		{"always",
			v1alpha1.Window{Start: "00:00", End: "00:00", TimeZone: "Europe/Berlin"}, "2026-11-18T00:00:00+01:00", 0},
		{"zone Local",
			v1alpha1.Window{Start: "00:00", End: "00:00", TimeZone: "Local"}, "2026-11-18T01:00:00+01:00", Never},
		{"without a zone", v1alpha1.Window{Start: "00:00", End: "00:00"}, "2026-11-18T01:00:00+01:00", Never},
	} {
		if got := UntilOpen(tc.w, at(tc.now)); got != tc.opens {
			t.Errorf("%s: opens in %s, want %s", tc.name, got, tc.opens)
		}
	}
}
