// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// fortnight returns hourly values of the last days of noon.
func fortnight(hours int, value func(hoursAgo int) float64) []Point {
	var points []Point
	for i := range hours {
		points = append(points, Point{noon().Add(time.Duration(i-hours) * time.Hour), value(hours - i)})
	}
	return points
}

func TestCapForecastOf(t *testing.T) {
	for _, tc := range []struct {
		name    string
		points  []Point
		maxGB   int
		days    float64 // until read-only; negative means no time
		message string
	}{
		{"10 GB a day to 195 GB", fortnight(336, func(ago int) float64 { return 95 - float64(ago)/2.4 }), 200, 10, "A volume of 200 GB (spec.storage.maxGB) would be read-only at 2026-11-3"},
		{"the last day is faster", fortnight(336, func(ago int) float64 { return 95 - 2*float64(min(ago, 24)) }), 200, 2, "at the rate of the last day"},
		{"nothing grows", fortnight(336, func(int) float64 { return 95 }), 200, -1, "would not be read-only before"},
		{"full", fortnight(336, func(int) float64 { return 199 }), 200, 0, "at the present used space"},
		{"no data", nil, 200, -1, "It is not known when the volume reaches spec.storage.maxGB: Cloud Eye has no measurement"},
		{"too few", fortnight(5, func(int) float64 { return 95 }), 200, -1, "not known"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := CapForecastOf(tc.points, tc.maxGB, noon())
			if !strings.Contains(f.Message, tc.message) {
				t.Errorf("%q, want %q", f.Message, tc.message)
			}
			if (f.ReadOnlyTime == nil) != (tc.days < 0) {
				t.Fatalf("read-only at %v", f.ReadOnlyTime)
			}
			if f.ReadOnlyTime != nil {
				if days := f.ReadOnlyTime.Sub(noon()).Hours() / 24; days < tc.days-1 || days > tc.days+1 {
					t.Errorf("in %.1f days, want about %g", days, tc.days)
				}
			}
		})
	}
}

func TestCapIsWarnedOfTwice(t *testing.T) {
	c := quiet()
	var given []Reason
	for _, hours := range []int{400, 300, 299, 73, 71, 20} {
		until := noon().Add(time.Duration(hours) * time.Hour)
		c.Status.CapForecast = &v1alpha1.CapForecast{Time: *seconds(c.Now), ReadOnlyTime: seconds(until), Message: "soon"}
		for _, w := range UpdateWarnings(c, &c.Status) {
			given = append(given, w.Reason)
		}
	}
	if len(given) != 2 || given[0] != ReasonCapAhead || given[1] != ReasonCapSoon {
		t.Errorf("warnings %v", given)
	}
}

func TestCapForecastIsDueOnceADayAndAfterAGrowth(t *testing.T) {
	last := func(age time.Duration) *v1alpha1.CapForecast {
		return &v1alpha1.CapForecast{MaxGB: 4000, Time: *seconds(noon().Add(-age))}
	}
	grown := []v1alpha1.Change{{Kind: v1alpha1.KindVolume, Outcome: v1alpha1.OutcomeCompleted, CompletionTime: ago(time.Hour)}}
	for name, tc := range map[string]struct {
		change func(*Case)
		due    bool
	}{
		"never computed": {func(c *Case) { c.Status.CapForecast = nil }, true},
		"computed today": {func(*Case) {}, false},
		"a day old":      {func(c *Case) { c.Status.CapForecast = last(24 * time.Hour) }, true},
		"grown since":    {func(c *Case) { c.Status.Changes = grown }, true},
		"another cap":    {func(c *Case) { c.Spec.Storage.MaxGB = 500 }, true},
		"a pending change": {func(c *Case) {
			c.Status.CapForecast, c.Status.Pending = nil, intentTo(v1alpha1.KindVolume, "100", "110", 0)
		}, false},
		"no instance": {func(c *Case) { c.Status.CapForecast, c.Instance = nil, nil }, false},
	} {
		c := quiet()
		c.Status.CapForecast = last(2 * time.Hour)
		tc.change(&c)
		if c.NeedsCapForecast() != tc.due {
			t.Errorf("%s: due %t, want %t", name, !tc.due, tc.due)
		}
	}
}
