// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync"
	"time"
)

// hour counts what happened within an hour: a place for each minute, which the minute an hour later takes over. It is exact to
// the minute, and its size depends on nothing that comes in.
type hour[K comparable] struct {
	mu     sync.Mutex
	places [60]minute[K]
}

type minute[K comparable] struct {
	start  int64 // in minutes since 1970
	counts map[K]int
}

// add counts one of a kind.
func (h *hour[K]) add(kind K, now time.Time) {
	start := now.Unix() / 60
	h.mu.Lock()
	defer h.mu.Unlock()
	m := &h.places[start%int64(len(h.places))]
	if m.start != start || m.counts == nil {
		*m = minute[K]{start, map[K]int{}}
	}
	m.counts[kind]++
}

// count says how many of a kind there were in the minute of now and the 59 before it.
func (h *hour[K]) count(kind K, now time.Time) (n int) {
	start := now.Unix() / 60
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.places {
		if m.start <= start && m.start > start-int64(len(h.places)) {
			n += m.counts[kind]
		}
	}
	return n
}
