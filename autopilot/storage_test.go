// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestThresholdLeavesAMarginBeforeReadOnly(t *testing.T) {
	for _, tc := range []struct{ size, given, want int }{
		{40, 90, 75}, {50, 90, 77}, {60, 90, 79}, {80, 90, 81}, {100, 90, 85}, {150, 90, 90}, {1000, 90, 90}, {4000, 90, 90},
		{40, 60, 60}, {100, 95, 85}, {1000, 99, 96}, {4000, 99, 99}, {10, 90, 37}, {5, 90, 1}, {0, 90, 90}, {-10, 90, 90}, {0, -5, 1}, {100, -5, 1},
	} {
		if got := Threshold(tc.size, tc.given); got != tc.want {
			t.Errorf("Threshold(%d GB, %d %%) = %d %%, want %d %%", tc.size, tc.given, got, tc.want)
		}
	}
}

func TestReadOnlyBeginsAtOneLimitAndEndsAtALowerOne(t *testing.T) {
	for _, tc := range []struct {
		size               int
		used               float64
		readOnly, writable bool
	}{
		{100, 94.9, false, false}, {100, 95, true, false}, {100, 87, false, true}, {100, 87.1, false, false},
		{500, 484.9, false, false}, {500, 485, true, false}, {1000, 969.9, false, false}, {1000, 970, true, false},
		{190, 184.3 - 1e-9, true, false}, // as a percentage × the size may be
		{1000, 850, false, true}, {1000, 850.1, false, false}, {0, 0, false, true}, {100, math.NaN(), false, false},
	} {
		if got := readOnlyNow(tc.size, tc.used); got != tc.readOnly {
			t.Errorf("%g of %d GB: read-only %t", tc.used, tc.size, got)
		}
		if got := writable(tc.size, tc.used); got != tc.writable {
			t.Errorf("%g of %d GB: writable %t", tc.used, tc.size, got)
		}
	}
}

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// grownBy returns a completed growth of ours by so many GB.
func grownBy(gb int, ago time.Duration) v1alpha1.Change {
	return v1alpha1.Change{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, State: v1alpha1.StateCompleted,
		From: "100", To: strconv.Itoa(100 + gb), EndTime: *Micro(noon().Add(-ago))}
}

func TestStepDependsOnOurLastCompletedGrowth(t *testing.T) {
	const day = 24 * time.Hour
	byOther, lost, flavor := grownBy(40, time.Minute), grownBy(40, time.Minute), grownBy(40, time.Minute)
	byOther.By, lost.State, flavor.Kind = v1alpha1.ByOther, v1alpha1.StateLost, v1alpha1.KindFlavor
	tens, tenth := v1alpha1.Storage{StepGB: 10}, v1alpha1.Storage{StepGB: 10, StepPercent: 10}
	for _, tc := range []struct {
		name    string
		size    int
		policy  v1alpha1.Storage
		changes []v1alpha1.Change
		want    int
	}{
		{"no growth yet", 1000, tens, nil, 10},
		{"an hour ago", 1000, tens, []v1alpha1.Change{grownBy(20, time.Hour)}, 40},
		{"at most half of the volume", 90, tens, []v1alpha1.Change{grownBy(40, time.Minute)}, 40},
		{"at most a tenth after an hour", 290, tens, []v1alpha1.Change{grownBy(40, time.Hour)}, 20},
		{"7 days ago, as large as the last", 1000, tens, []v1alpha1.Change{grownBy(40, 7*day)}, 40},
		{"7 days ago, at most a tenth", 390, tens, []v1alpha1.Change{grownBy(40, 7*day)}, 30},
		{"30 days ago", 1000, tens, []v1alpha1.Change{grownBy(40, 30*day)}, 10},
		{"never less than stepGB", 100, v1alpha1.Storage{StepGB: 50}, []v1alpha1.Change{grownBy(10, time.Minute)}, 50},
		{"another writer's growth does not count", 1000, tens, []v1alpha1.Change{byOther}, 10},
		{"a lost growth does not count", 1000, tens, []v1alpha1.Change{lost}, 10},
		{"a flavor does not count", 1000, tens, []v1alpha1.Change{flavor}, 10},
		{"the newest counts", 1000, tens, []v1alpha1.Change{lost, grownBy(30, time.Minute), grownBy(90, time.Hour)}, 60},
		{"a share of a large volume", 1000, tenth, nil, 100},
		{"a share is rounded up to tens", 210, tenth, nil, 30},
		{"a share of less than stepGB", 50, v1alpha1.Storage{StepGB: 20, StepPercent: 10}, nil, 20},
		{"a share doubles", 1100, tenth, []v1alpha1.Change{grownBy(100, time.Minute)}, 200},
		{"never less than the share", 1000, v1alpha1.Storage{StepGB: 10, StepPercent: 20}, []v1alpha1.Change{grownBy(60, day)}, 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := nextStep(tc.size, tc.policy, tc.changes, noon()); got != tc.want {
				t.Errorf("step of %d GB, want %d GB", got, tc.want)
			}
		})
	}
}

func TestNewSizeFollowsUsedSpaceStepAndCap(t *testing.T) {
	for _, tc := range []struct {
		name                  string
		size                  int
		percent               float64
		step, max, given, exp int
		readOnly              bool
	}{
		{"small disk over its own threshold", 40, 76, 10, 4000, 90, 50, false},
		{"one step is enough", 100, 86, 10, 4000, 90, 110, false},
		{"read-only at 100 GB", 100, 99, 10, 4000, 90, 120, true},
		{"one step would be at the threshold again", 1000, 91, 10, 4000, 90, 1020, false},
		{"read-only at 500 GB needs to come down to 87 %", 500, 97.5, 10, 4000, 90, 570, true},
		{"read-only at 92 %", 200, 92, 10, 4000, 90, 220, true},
		{"below the threshold", 40, 70, 10, 4000, 90, 40, false},
		{"below the threshold, and read-only", 160, 88, 10, 4000, 90, 170, true},
		{"writable, although it was read-only", 200, 87, 10, 4000, 90, 200, true},
		{"the last step is clamped", 100, 92, 50, 120, 90, 120, false},
		{"at the cap", 100, 99, 10, 100, 90, 100, true},
		{"from 1000 GB 150 GB must be free again", 1000, 98, 10, 4000, 90, 1130, true},
		{"exactly at the threshold counts", 100, 85, 10, 4000, 90, 110, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			used := tc.percent * float64(tc.size) / 100
			rule := growth{stepGB: tc.step, maxGB: tc.max, thresholdPercent: tc.given, readOnly: tc.readOnly}
			if got := rule.newSize(tc.size, used); got != tc.exp {
				t.Errorf("%d GB, %g %% used: new size %d GB, want %d GB", tc.size, tc.percent, got, tc.exp)
			}
		})
	}
}

func TestNewSizeNeverShrinksNeverPassesTheCapAndNeverStepsTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(40, 4000), rapid.Int()).Draw(t, "size")
		last := grownBy(10*rapid.IntRange(1, 200).Draw(t, "last/10"),
			time.Duration(rapid.IntRange(0, 40*24).Draw(t, "hours"))*time.Hour)
		rule := growth{
			stepGB:           nextStep(size, anyStep(t), []v1alpha1.Change{last}, noon()),
			maxGB:            10 * rapid.OneOf(rapid.IntRange(4, 400), rapid.SampledFrom([]int{math.MinInt / 10, 0, math.MaxInt / 10})).Draw(t, "max/10"),
			thresholdPercent: rapid.IntRange(1, 99).Draw(t, "given"),
			readOnly:         rapid.Bool().Draw(t, "readOnly"),
		}
		odd := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}))
		used := rapid.OneOf(rapid.Float64Range(0, 4100), odd).Draw(t, "used")
		got := rule.newSize(size, used)
		if got < size {
			t.Fatalf("%d GB became %d GB", size, got)
		}
		if got > max(size, rule.maxGB) {
			t.Fatalf("%d GB is past the cap of %d GB", got, rule.maxGB)
		}
		if got != size && got%10 != 0 {
			t.Fatalf("%d GB is no multiple of 10", got)
		}
		rule.stepGB = 10 * rapid.IntRange(1, 200).Draw(t, "next step/10")
		if got < rule.maxGB && rule.newSize(got, used) != got {
			t.Fatalf("the same %g GB lead to a second step after %d → %d GB", used, size, got)
		}
		if got == size || got == min(rule.maxGB, 2*largestVolume) {
			return
		}
		if readOnlyNow(got, used) || atThreshold(got, used, rule.thresholdPercent) {
			t.Fatalf("%d GB with %g GB used is still full", got, used)
		}
		if rule.readOnly && !writable(got, used) {
			t.Fatalf("a database with %g GB used stays read-only with %d GB", used, got)
		}
	})
}

// anyStep draws the steps of a policy.
func anyStep(t *rapid.T) v1alpha1.Storage {
	return v1alpha1.Storage{
		StepGB:      10 * rapid.Int32Range(1, 50).Draw(t, "step/10"),
		StepPercent: max(0, rapid.Int32Range(-50, 50).Draw(t, "percent")), // half of the policies have none
	}
}

func TestStepIsAMultipleOfTenBetweenItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, policy := rapid.IntRange(40, 4000).Draw(t, "size"), anyStep(t)
		last := 10 * rapid.IntRange(-10, 400).Draw(t, "last/10")
		age := time.Duration(rapid.IntRange(-60, 40*24*60).Draw(t, "minutes")) * time.Minute
		got := nextStep(size, policy, []v1alpha1.Change{grownBy(last, age)}, noon())
		first := nextStep(size, policy, nil, noon())
		if share := float64(size) * float64(policy.StepPercent) / 100; first%10 != 0 || first < int(policy.StepGB) ||
			float64(first) < share || first > int(policy.StepGB) && float64(first) >= share+10 {
			t.Fatalf("%d GB: first step of %d GB, want the larger of %d GB and %g GB", size, first, policy.StepGB, share)
		}
		most := max(first, min(2*last, size/2))
		if age >= time.Hour {
			most = max(first, min(2*last, size/10))
		}
		if got < first || got > most || got%10 != 0 {
			t.Fatalf("%d GB after %d GB %s ago: step of %d GB, want %d to %d GB", size, last, age, got, first, most)
		}
	})
}
