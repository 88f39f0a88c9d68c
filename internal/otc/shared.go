// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
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

// lists are the reads that all callers share, so that a storm of alarms costs as many requests as one alarm.
type lists struct {
	instances  *shared.Reads[project, map[string]autopilot.Instance] // by id
	rules      *shared.Reads[project, ruleList]
	series     *shared.Reads[project, map[Series]bool] // of seriesMetric
	catalogues *shared.Reads[release, []flavors.Flavor]
	points     *batcher
	jobs       *shared.Reads[string, autopilot.Job]
}

// ruleList is one list of all alarm rules, and their states by rule id, which every round needs.
type ruleList struct {
	rules  []Rule
	states map[string]autopilot.AlarmState
}

func (c *Cloud) share() {
	jobRate := jobShare * float64(c.transport.rate)
	limit := rate.NewLimiter(rate.Limit(jobRate), int(math.Ceil(jobRate)))
	c.lists = lists{
		instances: newList(c.now, func(ctx context.Context) (map[string]autopilot.Instance, error) {
			all, err := c.ListInstances(ctx)
			byID := make(map[string]autopilot.Instance, len(all))
			for _, i := range all {
				byID[i.ID] = i
			}
			return byID, err
		}),
		rules: newList(c.now, func(ctx context.Context) (ruleList, error) {
			rules, err := c.ListRules(ctx)
			states := make(map[string]autopilot.AlarmState, len(rules))
			for _, r := range rules {
				states[r.ID] = autopilot.AlarmState{State: r.State, Since: r.UpdateTime}
			}
			return ruleList{rules, states}, err
		}),
		series: newList(c.now, c.ListSeries),
		catalogues: newLists(c.now, func(ctx context.Context, of release) ([]flavors.Flavor, error) {
			return c.ListFlavors(ctx, of.engine, of.version)
		}),
		points: newBatcher(c.readPoints, c.now),
		jobs: &shared.Reads[string, autopilot.Job]{Now: c.now, Keep: jobKept,
			Read: func(ctx context.Context, id string, _ time.Time) (autopilot.Job, time.Time, error) {
				if err := limit.Wait(ctx); err != nil {
					return autopilot.Job{}, time.Time{}, err
				}
				begun := c.now()
				job, err := safely(func() (autopilot.Job, error) { return c.readJob(ctx, id) })
				return job, begun, err
			}},
	}
}

// ListMaxAge returns how old a list of alarm states or instances may be that a decision without news uses.
func (c *Cloud) ListMaxAge() time.Duration { return max(usableFor(c.rules), usableFor(c.instances)) }

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

// pageSize is how many rows all services return in one request at most.
const pageSize = 100

// everyPage reads all pages of a list. The services do not agree on where the next page begins: Cloud Eye's documents
// say both "at" and "after" the marker. So it keeps each key once, and a page without a new row is the last. fetch is
// called with the number of rows so far and the last key. It returns a page and the total, or -1 if the service sends
// no total.
//
// everyPage converts each page at once, so that it holds only one page of a long list in the SDK's types.
func everyPage[R, T any](key func(R) string, convert func(R) T,
	fetch func(offset int, last string) (page []R, total int, err error)) ([]T, error) {
	var rows []T
	seen := map[string]bool{}
	last, offset := "", 0
	for {
		page, total, err := fetch(offset, last)
		if err != nil {
			return nil, err
		}
		before := len(rows)
		for _, row := range page {
			last = key(row)
			if !seen[last] {
				seen[last] = true
				rows = append(rows, convert(row))
			}
		}
		offset += len(page)
		if len(rows) == before || (len(page) < pageSize && len(rows) >= total) {
			return rows, nil
		}
	}
}
