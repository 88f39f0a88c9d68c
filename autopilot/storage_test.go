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
			rule := growth{stepGB: tc.step, maxGB: tc.max, thresholdPercent: tc.given}
			if got := rule.newSize(tc.size, used); got != tc.exp {
				t.Errorf("%d GB, %g %% used: new size %d GB, want %d GB", tc.size, tc.percent, got, tc.exp)
			}
		})
	}
}

func TestNewSizeLastsAtTheFastRate(t *testing.T) {
	for _, tc := range []struct {
		name     string
		size     int
		used     float64
		ahead    float64
		max, exp int
	}{
		{"a slow rate needs one step", 100, 92, 5, 4000, 110},
		{"18 GB in the next hour", 100, 92, 18, 4000, 120},
		{"30 GB in the next hour", 100, 92, 30, 4000, 130},
		{"exactly read-only is not enough", 100, 92, 13, 4000, 120},
		{"at most half of the volume more than the step", 100, 92, 500, 4000, 160},
		{"at most the cap", 100, 92, 500, 130, 130},
		{"a large volume is read-only with 30 GB free", 1000, 910, 95, 4000, 1040},
		{"below the threshold the rate is not enough", 100, 89, 500, 4000, 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rule := growth{stepGB: 10, maxGB: tc.max, thresholdPercent: 90, aheadGB: tc.ahead}
			if got := rule.newSize(tc.size, tc.used); got != tc.exp {
				t.Errorf("%d GB, %g GB used, %g GB to come: new size %d GB, want %d GB", tc.size, tc.used, tc.ahead, got, tc.exp)
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
		ahead := rapid.Float64Range(0, 200).Draw(t, "ahead")
		rule := growth{stepGB: step, maxGB: limit, thresholdPercent: given, aheadGB: ahead}
		got := rule.newSize(size, used)
		if got < size {
			t.Fatalf("%d GB became %d GB", size, got)
		}
		if got > max(size, limit) {
			t.Fatalf("%d GB is past the cap of %d GB", got, limit)
		}
		if got%10 != 0 {
			t.Fatalf("%d GB is no multiple of 10", got)
		}
		if got < limit && rule.newSize(got, used) != got {
			t.Fatalf("the same %g GB asked for a second step after %d → %d GB", used, size, got)
		}
		if got > size && got < limit && readOnly(got, used) {
			t.Fatalf("%d GB with %g GB used is still read-only", got, used)
		}
		rule.aheadGB = 0
		if slow := rule.newSize(size, used); got < slow || got > slow+size/2 {
			t.Fatalf("%d GB became %d GB, and %d GB without the rate", size, got, slow)
		}
	})
}
