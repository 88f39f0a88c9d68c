// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"maps"
	"sync"
	"time"
)

const (
	// jobShare is the share of the service's rate that reading jobs may use. The other calls to RDS need the rest, and
	// the lists show the progress of a change as well.
	jobShare = 0.4
	// turnKeptFor is how long the turn of a job is kept that nobody asks about any more, because its change has ended.
	turnKeptFor = time.Hour
)

// jobTurns spaces the requests for the states of jobs. Without it, 300 running jobs that are checked every 30 seconds
// would need 10 requests a second. Every job has its turn, in the order in which they were asked about.
type jobTurns struct {
	gap time.Duration // between two turns

	mu    sync.Mutex
	turns map[string]time.Time // by job id
	last  time.Time            // the latest turn that was given
}

func newJobTurns(rate float64) *jobTurns {
	return &jobTurns{gap: time.Duration(float64(time.Second) / (rate * jobShare)), turns: make(map[string]time.Time)}
}

// take reports whether it is the job's turn. Otherwise the caller must ask again later.
func (j *jobTurns) take(id string, now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	turn, waits := j.turns[id]
	if !waits {
		if turn = j.last.Add(j.gap); turn.Before(now) {
			turn = now
		}
		j.last = turn
		maps.DeleteFunc(j.turns, func(_ string, t time.Time) bool { return now.Sub(t) > turnKeptFor })
	}
	if now.Before(turn) {
		j.turns[id] = turn
		return false
	}
	delete(j.turns, id)
	return true
}
