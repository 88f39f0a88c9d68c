// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/shared"
)

const (
	// restFactor is how long a list rests after a read, as a multiple of the time that the read took. A long list needs
	// many requests, and the other requests of the service need most of its rate.
	restFactor = 4
	// maxRest is the longest rest. A decision waits for the next read, so the rest must not grow with the list forever.
	maxRest = 10 * time.Second
	// minUsable is how long even a quick read is used again, because callers of the same second need only one.
	minUsable = time.Second
)

// project is the key of a list of everything in the project.
type project struct{}

// newLists returns lists that all callers share. A read has no deadline, because the number of its requests depends on
// the cloud; each request has one.
func newLists[K comparable, T any](now func() time.Time,
	read func(ctx context.Context, key K) (T, error)) *shared.Reads[K, T] {
	return &shared.Reads[K, T]{Now: now, Rest: rest,
		Read: func(ctx context.Context, key K, _ time.Time) (T, time.Time, error) {
			begun := now()
			list, err := safely(func() (T, error) { return read(ctx, key) })
			return list, begun, err
		}}
}

// newList returns a list of everything in the project.
func newList[T any](now func() time.Time, read func(ctx context.Context) (T, error)) *shared.Reads[project, T] {
	return newLists(now, func(ctx context.Context, _ project) (T, error) { return read(ctx) })
}

// rest returns how long a list rests after a read. A decision must not wait for a service that has just failed, so a
// failure is returned for at least minUsable.
func rest(took time.Duration, err error) time.Duration {
	pause := min(restFactor*took, maxRest)
	if err != nil {
		return max(pause, minUsable)
	}
	return pause
}

// usableFor returns how long after its begin a list is new enough for callers without news. It is twice the time from
// one read to the next, which leaves more than half of the service's rate to other requests.
func usableFor[T any](list *shared.Reads[project, T]) time.Duration {
	last, ok := list.Last(project{})
	if !ok {
		return 0
	}
	return max(minUsable, 2*(last.Took+rest(last.Took, nil)))
}

// safely calls a read and returns its panic as a PanicError, which the controller logs with its stack.
func safely[T any](read func() (T, error)) (value T, err error) {
	defer autopilot.CatchPanic(&err)
	return read()
}
