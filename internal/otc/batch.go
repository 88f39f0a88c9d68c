// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/shared"
)

const (
	// batchDelay is how long the first series of a request waits for others, because one request reads ten. An alarm is
	// minutes old when it arrives, so a second more does not matter.
	batchDelay = time.Second
	// pointsUsableFor is how long datapoints are used again by callers without news. Raw data is new once a minute,
	// but our patch and the operator's updates start several rounds per minute.
	pointsUsableFor = 30 * time.Second
)

// batcher reads datapoints for all callers of about the same time in common requests. It sends a full request at once,
// and another one after batchDelay. One bad series does not hide the others: see readEach.
type batcher struct {
	read  func(ctx context.Context, series []Series, period int) (map[Series][]autopilot.Point, error)
	now   func() time.Time
	reads *shared.Reads[seriesKey, []autopilot.Point]

	mu      sync.Mutex
	pending map[int]*batch // by period: waits for more series
}

type seriesKey struct {
	Series
	period int
}

type batch struct {
	series []Series
	full   chan struct{} // closed when no other series has a place
	begun  time.Time     // when it was sent
	done   chan struct{} // closed when the next two are set
	points map[Series][]autopilot.Point
	failed map[Series]error
}

func newBatcher(read func(context.Context, []Series, int) (map[Series][]autopilot.Point, error),
	now func() time.Time) *batcher {
	b := &batcher{read: read, now: now, pending: make(map[int]*batch)}
	b.reads = &shared.Reads[seriesKey, []autopilot.Point]{Read: b.join, Now: now, Keep: pointsUsableFor + batchDelay}
	return b
}

// get returns the datapoints of these series in a period in seconds, read at notBefore or later, but at most
// pointsUsableFor old in any case. A failure is not used again.
func (b *batcher) get(ctx context.Context, period int, all []Series, notBefore time.Time) map[Series]autopilot.Reading {
	if oldest := b.now().Add(-pointsUsableFor); notBefore.Before(oldest) {
		notBefore = oldest
	}
	found := make(map[Series]autopilot.Reading, len(all))
	var mu sync.Mutex
	var reading sync.WaitGroup
	for _, s := range all { // at the same time, so that they share a request
		reading.Go(func() {
			points, err := b.reads.Get(ctx, seriesKey{s, period}, notBefore)
			mu.Lock()
			defer mu.Unlock()
			found[s] = autopilot.Reading{Points: points, Err: err}
		})
	}
	reading.Wait()
	return found
}

// join adds a series to the pending batch of its period, and returns the datapoints of the series and when the batch
// was sent. The caller that begins a batch sends it.
func (b *batcher) join(ctx context.Context, key seriesKey, _ time.Time) ([]autopilot.Point, time.Time, error) {
	b.mu.Lock()
	x, joins := b.pending[key.period]
	if !joins {
		x = &batch{full: make(chan struct{}), done: make(chan struct{})}
		b.pending[key.period] = x
	}
	x.series = append(x.series, key.Series)
	if len(x.series) == SeriesPerQuery {
		delete(b.pending, key.period)
		close(x.full)
	}
	b.mu.Unlock()
	if !joins {
		b.send(ctx, x, key.period)
	}
	<-x.done
	return x.points[key.Series], x.begun, x.failed[key.Series]
}

func (b *batcher) send(ctx context.Context, x *batch, period int) {
	defer close(x.done)
	select {
	case <-x.full:
	case <-time.After(batchDelay):
		b.mu.Lock()
		if b.pending[period] == x {
			delete(b.pending, period)
		}
		b.mu.Unlock()
	}
	x.begun = b.now()
	x.points, x.failed = readEach(x.series, func(series []Series) (map[Series][]autopilot.Point, error) {
		return b.read(ctx, series, period)
	})
}

// readEach reads series in one request. If the cloud rejects that request, or if its answer cannot be decoded, readEach
// reads each series alone, because one of them may be the reason. If the first three are rejected as well, the request
// itself is the problem. failed has the error of each series that could not be read.
func readEach(series []Series, request func([]Series) (map[Series][]autopilot.Point, error),
) (found map[Series][]autopilot.Point, failed map[Series]error) {
	failed = make(map[Series]error)
	read := func(series []Series) (map[Series][]autopilot.Point, error) {
		return safely(func() (map[Series][]autopilot.Point, error) { return request(series) })
	}
	found, err := read(series)
	if err == nil {
		return found, nil
	}
	isCommon := len(series) == 1 || !isRejected(err) && !isUndecodable(err) // no other request would do better
	found = make(map[Series][]autopilot.Point, len(series))
	for i, s := range series {
		if isCommon = isCommon || i == 3 && len(failed) == 3; isCommon {
			failed[s] = err
			continue
		}
		points, err := read([]Series{s})
		if err != nil {
			failed[s] = err
		}
		maps.Copy(found, points)
	}
	return found, failed
}

// isRejected reports whether the cloud has answered a request, but not with data. It has not if it cannot be reached, or
// if the login or the rate is the problem, because that would be the same for each part of the request.
func isRejected(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status >= 400 && e.Status != http.StatusUnauthorized && e.Status != http.StatusTooManyRequests &&
		e.Status != http.StatusServiceUnavailable
}

// isOutage reports whether an error is the same for every series, so that no other one needs to be tried.
func isOutage(err error) bool {
	return errors.Is(err, ErrUnavailable) && !isRejected(err) && !isUndecodable(err)
}

// isUndecodable reports whether an answer holds something that is no JSON, such as NaN, or a value of another type,
// such as a text instead of a number. The page of a proxy is no answer: it is no JSON from its first character on.
func isUndecodable(err error) bool {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return true
	}
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	return ok && syntax.Offset > 1
}
