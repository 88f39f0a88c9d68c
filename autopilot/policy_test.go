// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestMaxGBDefaultsToFourTimesTheBaseline(t *testing.T) {
	for _, tc := range []struct{ given, baseline, now, want int }{
		{400, 40, 100, 400},
		{0, 40, 100, 200},
		{0, 50, 100, 200},
		{0, 60, 100, 240},
		{0, 100, 390, 400},
		{0, 1000, 1000, 4000},
		{0, 1500, 1500, 4000},
		{0, 0, 100, 400}, // not recorded yet
		{0, 0, 0, 0},
	} {
		var b *v1alpha1.Baseline
		if tc.baseline > 0 {
			b = &v1alpha1.Baseline{VolumeGB: int32(tc.baseline)}
		}
		spec := v1alpha1.Spec{Storage: v1alpha1.Storage{MaxGB: int32(tc.given)}}
		if got := MaxGB(spec, b, tc.now); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

func TestNarrowerModeReturnsTheStricterMode(t *testing.T) {
	fromStrictest := []v1alpha1.Mode{v1alpha1.ModeOff, v1alpha1.ModeRecommend, v1alpha1.ModeAuto}
	for i, policy := range fromStrictest {
		for j, flag := range fromStrictest {
			if got, want := NarrowerMode(policy, flag), fromStrictest[min(i, j)]; got != want {
				t.Errorf("policy %s, --mode %s: %s, want %s", policy, flag, got, want)
			}
		}
	}
}
