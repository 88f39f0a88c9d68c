// SPDX-License-Identifier: Apache-2.0

package app

import (
	"runtime"
	"testing"
)

func TestALargeHeapGrowsByLess(t *testing.T) {
	const mib = 1 << 20
	for live, want := range map[uint64]int{0: 100, 1: 100, 4 * mib: 100, 8 * mib: 100, 10 * mib: 80, 16 * mib: 50, 500 * mib: 50} {
		if got := gogc(live); got != want {
			t.Errorf("%d bytes: GOGC %d, want %d", live, got, want)
		}
	}
	runtime.GC()
	if liveHeap() == 0 {
		t.Error("nothing is in use")
	}
}
