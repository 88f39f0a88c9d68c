// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"

	"pgregory.net/rapid"
)

func TestThresholdLeavesTenGBFree(t *testing.T) {
	for _, tc := range []struct{ size, given, want int }{
		{40, 90, 75}, {50, 90, 80}, {60, 90, 83}, {100, 90, 90}, {1000, 90, 90}, {4000, 90, 90},
		{40, 60, 60}, {100, 95, 90}, {1000, 99, 99}, {10, 90, 1},
	} {
		if got := Threshold(tc.size, tc.given); got != tc.want {
			t.Errorf("Threshold(%d GB, %d %%) = %d %%, want %d %%", tc.size, tc.given, got, tc.want)
		}
	}
}

func TestNewSize(t *testing.T) {
	for _, tc := range []struct {
		name                  string
		size                  int
		percent               float64
		step, max, given, exp int
	}{
		{"small disk over its own threshold", 40, 76, 10, 4000, 90, 50},
		{"one step is enough", 100, 92, 10, 4000, 90, 110},
		{"read-only at 100 GB", 100, 99, 10, 4000, 90, 120},
		{"one step would be over the threshold again", 1000, 91, 10, 4000, 90, 1020},
		{"read-only at 500 GB needs to come down to 87 %", 500, 97.5, 10, 4000, 90, 570},
		{"below the threshold", 40, 70, 10, 4000, 90, 40},
		{"a larger step", 100, 92, 50, 4000, 90, 150},
		{"the last step is clamped", 100, 92, 50, 120, 90, 120},
		{"at the cap", 100, 99, 10, 100, 90, 100},
		{"above the cap nothing shrinks", 100, 99, 10, 60, 90, 100},
		{"from 1000 GB 150 GB must be free again", 1000, 98, 10, 4000, 90, 1130},
		{"exactly at the threshold counts", 100, 90, 10, 4000, 90, 110},
		{"the last GB of the largest", 3990, 99.9, 10, 4000, 90, 4000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			used := tc.percent * float64(tc.size) / 100
			if got := newSize(tc.size, used, tc.step, tc.max, tc.given); got != tc.exp {
				t.Errorf("%d GB, %g %% used: new size %d GB, want %d GB", tc.size, tc.percent, got, tc.exp)
			}
		})
	}
}

func TestNewSizeNeverShrinksNeverPassesTheCapAndNeverStepsTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := 10 * rapid.IntRange(4, 400).Draw(t, "size/10")
		limit := 10 * rapid.IntRange(4, 400).Draw(t, "max/10")
		step := 10 * rapid.IntRange(1, 50).Draw(t, "step/10")
		given := rapid.IntRange(1, 99).Draw(t, "given")
		used := rapid.Float64Range(0, 4100).Draw(t, "used")
		got := newSize(size, used, step, limit, given)
		if got < size {
			t.Fatalf("%d GB became %d GB", size, got)
		}
		if got > max(size, limit) {
			t.Fatalf("%d GB is past the cap of %d GB", got, limit)
		}
		if got%10 != 0 {
			t.Fatalf("%d GB is no multiple of 10", got)
		}
		if got < limit && newSize(got, used, step, limit, given) != got {
			t.Fatalf("the same %g GB asked for a second step after %d → %d GB", used, size, got)
		}
		if got > size && got < limit && readOnly(got, used) {
			t.Fatalf("%d GB with %g GB used is still read-only", got, used)
		}
	})
}
