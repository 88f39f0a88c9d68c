// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"runtime/debug"
	"time"
)

// returnEvery is a little less than the two minutes after which Go collects garbage in any case.
const returnEvery = 110 * time.Second

// returnMemory gives back, now and then, what a sweep or a storm took. Go itself would keep as much again as is in use, for work that
// comes once in minutes.
func returnMemory(ctx context.Context) {
	tick := time.NewTicker(returnEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			debug.FreeOSMemory()
		}
	}
}
