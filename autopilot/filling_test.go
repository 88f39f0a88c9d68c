// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"slices"
	"testing"
	"time"
)

// minutes returns one measurement a minute that ends at end.
func minutes(end time.Time, n int, value func(minute int) float64) []Point {
	var points []Point
	for i := range n {
		points = append(points, Point{Time: end.Add(time.Duration(i-n+1) * time.Minute), Value: value(i)})
	}
	return points
}

func TestFillingAt(t *testing.T) {
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	steady := func(i int) float64 { return 70 + 0.3*float64(i) }
	for _, tc := range []struct {
		name   string
		points []Point
		known  bool
		fast   float64 // GB per hour
	}{
		{"a steady rise", minutes(end, 60, steady), true, 18},
		{"older measurements do not count", minutes(end, 90, func(i int) float64 { return steady(max(i, 30)) }), true, 18},
		{"one burst does not decide", minutes(end, 60, func(i int) float64 { return 70 + 20*float64(i/30) }), true, 0},
		{"a burst of 27 minutes that has ended", minutes(end, 60, func(i int) float64 { return 66 + float64(min(max(i-20, 0), 27)) }), true, 0},
		{"a rise of 35 minutes that goes on", minutes(end, 60, func(i int) float64 { return 66 + 0.5*float64(max(i-25, 0)) }), true, 30},
		{"one clean-up does not decide", minutes(end, 60, func(i int) float64 { return steady(i) - 30*float64(i/30) }), true, 18},
		{"nothing changes", minutes(end, 60, func(int) float64 { return 70 }), true, 0},
		{"space is freed", minutes(end, 60, func(i int) float64 { return -steady(i) + 200 }), true, 0},
		{"two thirds of the hour", minutes(end, 40, steady), true, 18},
		{"too few measurements", minutes(end, 20, steady), false, 0},
		{"none", nil, false, 0},
		{"a measurement that cannot be true", append(minutes(end.Add(-time.Minute), 59, steady), Point{end, -1}), false, 0},
		{"no number", append(minutes(end.Add(-time.Minute), 59, steady), Point{end, math.NaN()}), false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			read := slices.Clone(tc.points)
			f := FillingAt(read, end)
			if f.Known != tc.known || math.Abs(f.Fast-tc.fast) > 2 {
				t.Errorf("%+v, want known %t and %g GB/h", f, tc.known, tc.fast)
			}
			if len(read) > 0 && !math.IsNaN(read[len(read)-1].Value) && !slices.Equal(read, tc.points) {
				t.Error("the measurements were modified")
			}
		})
	}
}

func TestDecideTakesALargerStepWhenStorageFillsFast(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ahead *int32
		rate  Filling
		to    string
		words string
	}{
		{"fast", nil, Filling{Known: true, Fast: 30}, "130", "Storage 100 → 130 GB: 92.0 % used, alarm at 90 %, filling at 30 GB/h"},
		{"slow", nil, Filling{Known: true, Fast: 2}, "110", "Storage 100 → 110 GB: 92.0 % used, alarm at 90 %"},
		{"unknown", nil, Filling{}, "110", "Storage 100 → 110 GB: 92.0 % used, alarm at 90 %"},
		{"two hours", new(int32(120)), Filling{Known: true, Fast: 30}, "160", "Storage 100 → 160 GB: 92.0 % used, alarm at 90 %, filling at 30 GB/h"},
		{"off", new(int32(0)), Filling{Known: true, Fast: 30}, "110", "Storage 100 → 110 GB: 92.0 % used, alarm at 90 %"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			full := storageAt(92)
			full.Evidence.Filling = tc.rate
			c := quiet().with(full)
			c.Spec.Storage.AheadMinutes = tc.ahead
			d := Decide(c).Decisions[0]
			if d.To != tc.to || d.Message != tc.words {
				t.Errorf("%s GB, %q; want %s GB, %q", d.To, d.Message, tc.to, tc.words)
			}
		})
	}
}
