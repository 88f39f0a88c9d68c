// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// returnEvery is a little less than the two minutes after which Go collects garbage in any case.
	returnEvery = 110 * time.Second
	// smallHeap in bytes is what Go may hold with its default of GOGC. A larger heap may grow by that much before garbage is
	// collected again, or by half: a storm that meets many databases must not double their memory.
	smallHeap   = 8 << 20
	gogcAtMost  = 100 // percent of what is in use; Go's default
	gogcAtLeast = 50
)

// limitMemory gives back, now and then, what a start, a sweep or a storm took, and sets how much the next one may take. Go itself would
// keep as much again as is in use, for work that comes once in minutes. It leaves GOGC alone where its user has set it.
func limitMemory(ctx context.Context, userGOGC bool) {
	tick := time.NewTicker(returnEvery)
	defer tick.Stop()
	for {
		debug.FreeOSMemory()
		if !userGOGC {
			debug.SetGCPercent(gogc(liveHeap()))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// liveHeap is what the last collection found in use, in bytes.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// gogc is by how many percent a heap with so many bytes in use may grow.
func gogc(live uint64) int {
	return int(min(gogcAtMost, max(gogcAtLeast, gogcAtMost*smallHeap/max(live, 1))))
}
