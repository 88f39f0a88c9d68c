// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"testing"
)

func TestClampInt32LimitsANumberOutOfRange(t *testing.T) {
	for n, want := range map[int]int32{-1: 0, 0: 0, 40: 40, math.MaxInt32: math.MaxInt32, 1<<32 + 40: math.MaxInt32} {
		if got := ClampInt32(n); got != want {
			t.Errorf("%d came out as %d, want %d", n, got, want)
		}
	}
}
