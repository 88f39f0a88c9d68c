// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// hourlyUntilNoon returns that many hourly values, the last one an hour before cases.Noon.
func hourlyUntilNoon(hours int, value func(hoursAgo int) float64) []autopilot.Point {
	var points []autopilot.Point
	for i := range hours {
		points = append(points, autopilot.Point{
			Time: cases.Noon().Add(time.Duration(i-hours) * time.Hour), Value: value(hours - i),
		})
	}
	return points
}

func TestCapForecastFollowsTheFasterOfTwoGrowths(t *testing.T) {
	flat := func(int) float64 { return 95 }
	// nightly fills from 50 GB to 130 GB within the day.
	nightly := func(ago int) float64 { return 50 + 80*float64(23-(ago-1)%24)/23 }
	withOne := func(value float64, ahead time.Duration) []autopilot.Point {
		return append(hourlyUntilNoon(336, flat), autopilot.Point{Time: cases.Noon().Add(ahead), Value: value})
	}
	for _, tc := range []struct {
		name            string
		points          []autopilot.Point
		volumeGB, maxGB int
		days            float64 // until read-only; negative means no time
		message         string
	}{
		{"10 GB a day to 195 GB", hourlyUntilNoon(336, func(ago int) float64 { return 95 - float64(ago)/2.4 }), 150, 200, 10,
			"A volume of 200 GB (spec.storage.maxGB) would be read-only at 2026-11-3"},
		{"the last day is faster", hourlyUntilNoon(336, func(ago int) float64 { return 95 - 2*float64(min(ago, 24)) }), 150, 200, 2,
			"by the growth over 24 hours"},
		{"nothing grows", hourlyUntilNoon(336, flat), 150, 200, -1, "would not be read-only before"},
		{"filled and cleaned each day", hourlyUntilNoon(336, nightly), 150, 200, -1, "would not be read-only before"},
		{"filled and cleaned each day, and now full", hourlyUntilNoon(335, func(ago int) float64 { return nightly(ago + 1) }), 150, 200,
			-1, "would not be read-only before"},
		{"full", hourlyUntilNoon(336, func(int) float64 { return 199 }), 200, 200, 0, "at the present used space"},
		{"the volume is larger than its cap and half empty", hourlyUntilNoon(336, func(int) float64 { return 210 }), 400, 200, -1,
			"The volume of 400 GB, which is larger than spec.storage.maxGB, would not be read-only before"},
		{"no data", nil, 150, 200, -1,
			"It is not known when the volume reaches spec.storage.maxGB: Cloud Eye has no measurement"},
		{"too few values", hourlyUntilNoon(5, flat), 150, 200, -1, "not known"},
		{"a value above the volume", withOne(199, 0), 150, 200, -1, "would not be read-only before"},
		{"a value hours ahead", withOne(149, 3*time.Hour), 150, 150, -1, "would not be read-only before"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := CapForecastOf(tc.points, tc.volumeGB, tc.maxGB, cases.Noon())
			if !strings.Contains(f.Message, tc.message) {
				t.Errorf("%q, want %q", f.Message, tc.message)
			}
			if int(f.MaxGB) != max(tc.volumeGB, tc.maxGB) {
				t.Errorf("of %d GB, want %d", f.MaxGB, max(tc.volumeGB, tc.maxGB))
			}
			if (f.ReadOnlyTime == nil) != (tc.days < 0) {
				t.Fatalf("read-only at %v", f.ReadOnlyTime)
			}
			if f.ReadOnlyTime != nil {
				if days := f.ReadOnlyTime.Sub(cases.Noon()).Hours() / 24; days < tc.days-1 || days > tc.days+1 {
					t.Errorf("in %.1f days, want about %g", days, tc.days)
				}
			}
		})
	}
}

func TestWarningsNameTheCapOnceAheadAndOnceSoon(t *testing.T) {
	c := cases.Quiet()
	var given []autopilot.Reason
	for _, hours := range []int{400, 300, 299, 73, 71, 20} {
		until := cases.Noon().Add(time.Duration(hours) * time.Hour)
		c.Status.Insight = &v1alpha1.Insight{Cap: &v1alpha1.CapForecast{
			MaxGB: 4000, Time: *autopilot.Seconds(c.Now), ReadOnlyTime: autopilot.Seconds(until), Message: "soon",
		}}
		c.Explained = Warnings(c)
		for _, w := range record.UpdateWarnings(c, &c.Status) {
			given = append(given, w.Reason)
		}
	}
	if len(given) != 2 || given[0] != autopilot.ReasonCapAhead || given[1] != autopilot.ReasonCapSoon {
		t.Errorf("warnings %v", given)
	}
}

func TestWarningsIgnoreACapThatIsOldOrOfAnotherSize(t *testing.T) {
	for name, tc := range map[string]struct {
		maxGB int32
		age   time.Duration
		warns bool
	}{
		"present":             {4000, 47 * time.Hour, true},
		"two days old":        {4000, 48 * time.Hour, false},
		"maxGB raised since":  {500, time.Hour, false},
		"the volume was less": {90, time.Hour, false},
	} {
		c := cases.Quiet()
		c.Status.Insight = &v1alpha1.Insight{Cap: &v1alpha1.CapForecast{
			MaxGB: tc.maxGB, Time: *autopilot.Seconds(c.Now.Add(-tc.age)), ReadOnlyTime: autopilot.Seconds(c.Now),
		}}
		if warns := len(Warnings(c)) > 0; warns != tc.warns {
			t.Errorf("%s: warns %t, want %t", name, warns, tc.warns)
		}
	}
}

func TestCapForecastIgnoresAnImportThatHasEnded(t *testing.T) {
	for hours := 1; hours <= 24; hours++ {
		used := hourlyUntilNoon(337, func(ago int) float64 {
			if ago <= hours {
				return 95
			}
			return 55
		})
		if f := CapForecastOf(used, 100, 200, cases.Noon()); f.ReadOnlyTime != nil {
			t.Errorf("40 GB were imported %d hours ago: %s", hours, f.Message)
		}
	}
}
