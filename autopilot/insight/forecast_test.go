// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// measured returns the used space of the last hours, one measurement every 5 minutes.
func measured(hours float64, gb func(hour float64) float64) []autopilot.Point {
	var points []autopilot.Point
	for h := 0.0; h <= hours; h += 1.0 / 12 {
		points = append(points, autopilot.Point{Time: cases.Noon().Add(-time.Duration((hours - h) * float64(time.Hour))), Value: gb(h)})
	}
	return points
}

func steady(from, perDay float64) func(float64) float64 {
	return func(h float64) float64 { return from + perDay*h/24 }
}

func TestForecastReadOnlyDerivesTimesFromRates(t *testing.T) {
	noise := rand.New(rand.NewPCG(1, 2))
	for _, test := range []struct {
		name      string
		used      []autopilot.Point
		size      int
		want      Outlook
		why       string
		in        [3]float64 // days to Earliest, Likely and Latest; 0 if it is after the horizon
		tolerance float64    // in days, of each of them
	}{
		{"a steady growth", measured(24, steady(80, 5)), 100, OutlookFills, "", [3]float64{2, 2, 2}, 0.01},
		{"a steady growth of a small volume, which is read-only with 5 GB free", measured(24, steady(30, 2)), 40, OutlookFills, "", [3]float64{1.5, 1.5, 1.5}, 0.01},
		{"a steady growth of a large volume, which is read-only with 30 GB free", measured(24, steady(900, 10)), 1000, OutlookFills, "", [3]float64{6, 6, 6}, 0.01},
		{"fast for half of the time, and slow for the other", measured(24, func(h float64) float64 {
			return 60 + 4*min(h, 12)/12 + 2*max(h-12, 0)/12
		}), 100, OutlookFills, "", [3]float64{3.6, 4.8, 0}, 0.1},
		{"growth with noise", measured(24, func(h float64) float64 { return 80 + 5*h/24 + noise.NormFloat64() }), 100, OutlookFills, "", [3]float64{1.6, 2, 2.7}, 0.4},
		{"temporary files come and go", measured(24, func(h float64) float64 {
			if math.Mod(h, 6) < 0.5 {
				return 95 // in 1 of 12
			}
			return 80 + 2*h/24
		}), 110, OutlookHolds, "", [3]float64{}, 0},
		{"nothing changes", measured(24, steady(50, 0)), 100, OutlookHolds, "", [3]float64{}, 0},
		{"shrinking", measured(24, steady(90, -10)), 100, OutlookHolds, "", [3]float64{}, 0},
		{"slower than a day of data can show", measured(24, steady(50, 1)), 100, OutlookHolds, "", [3]float64{}, 0},
		{"a purge in the middle", measured(24, func(h float64) float64 {
			if h < 12 {
				return 80 + h
			}
			return 60 + h
		}), 100, OutlookMayFill, "", [3]float64{0.45, 0, 0}, 0.2},
		{"already read-only", measured(24, steady(97, 0)), 100, OutlookReadOnly, "", [3]float64{}, 0},
		{"one hour of data reaches seven hours ahead", measured(1, steady(90, 24)), 100, OutlookFills, "", [3]float64{4. / 24, 4. / 24, 4. / 24}, 0.001},
		{"one hour of data does not reach further", measured(1, steady(80, 24)), 100, OutlookHolds, "", [3]float64{}, 0},

		{"no data", nil, 100, OutlookUnknown, "Cloud Eye has no measurement", [3]float64{}, 0},
		{"little data", measured(0.5, steady(80, 5)), 100, OutlookUnknown, "it takes 12 measurements, and there are 7", [3]float64{}, 0},
		{"many at the same time", slicesOf(autopilot.Point{Time: cases.Noon(), Value: 80}, 20), 100, OutlookUnknown, "all measurements are of the same time", [3]float64{}, 0},
		{"an unknown size", measured(24, steady(80, 5)), 0, OutlookUnknown, "the size of the volume is not known", [3]float64{}, 0},
		{"old data", measured(48, steady(80, 5))[:12*24], 100, OutlookUnknown, "the newest measurement is from 2026-11-19T11:55:00Z", [3]float64{}, 0},
		{"a gap", append(measured(24, steady(80, 5))[:20], measured(24, steady(80, 5))[12*23:]...), 100, OutlookUnknown, "more than half of the measurements are missing", [3]float64{}, 0},
	} {
		f := ForecastReadOnly(test.used, test.size, cases.Noon())
		if f.Outlook != test.want || !strings.HasPrefix(f.Why, test.why) || (f.Why == "") != (test.why == "") {
			t.Errorf("%s: %s %q, want %s %q", test.name, f.Outlook, f.Why, test.want, test.why)
			continue
		}
		for i, got := range []time.Time{f.Earliest, f.Likely, f.Latest} {
			days := got.Sub(cases.Noon()).Hours() / 24
			if got.IsZero() {
				days = 0
			}
			if math.Abs(days-test.in[i]) > test.tolerance || got.IsZero() != (test.in[i] == 0) {
				t.Errorf("%s: time %d is in %.2f days, want %.2f; %+v", test.name, i, days, test.in[i], f)
			}
		}
		if f.Slow > f.Middle || f.Middle > f.Fast {
			t.Errorf("%s: the rates are not in order: %+v", test.name, f)
		}
	}
}

func slicesOf(p autopilot.Point, n int) (all []autopilot.Point) {
	for range n {
		all = append(all, p)
	}
	return all
}
