// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
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
// and another one after batchDelay. If the cloud rejects a request, batcher reads each of its series alone, so that one
// bad series does not hide the others. It is not a listCache, because the callers of one request read different series.
type batcher struct {
	read func(ctx context.Context, series []otc.Series, period int) (map[otc.Series][]otc.Datapoint, error)
	size int // the number of series in a full request
	now  func() time.Time

	mu      sync.Mutex
	latest  map[seriesKey]*batch
	pending map[int]*batch // by period: waits for more series
}

// seriesKey is a series in one period in seconds.
type seriesKey struct {
	otc.Series
	period int
}

// batch is one request.
type batch struct {
	series []otc.Series
	begun  time.Time     // zero until it is sent
	done   chan struct{} // closed when the next two are set
	points map[otc.Series][]otc.Datapoint
	failed map[otc.Series]error
}

func newBatcher(read func(context.Context, []otc.Series, int) (map[otc.Series][]otc.Datapoint, error),
	now func() time.Time) *batcher {
	caught := func(ctx context.Context, series []otc.Series, period int) (map[otc.Series][]otc.Datapoint, error) {
		return safely(func() (map[otc.Series][]otc.Datapoint, error) { return read(ctx, series, period) })
	}
	return &batcher{read: caught, size: otc.SeriesPerQuery, now: now, latest: make(map[seriesKey]*batch),
		pending: make(map[int]*batch)}
}

// get returns the datapoints of these series in a period in seconds, read at notBefore or later, but at most
// pointsUsableFor old in any case. A series without datapoints is missing in the result.
func (b *batcher) get(ctx context.Context, period int, series []otc.Series,
	notBefore time.Time) (map[otc.Series][]otc.Datapoint, error) {
	found := make(map[otc.Series][]otc.Datapoint, len(series))
	mine := b.join(ctx, period, series, notBefore)
	for i, s := range series {
		select {
		case <-mine[i].done:
			if err := mine[i].failed[s]; err != nil {
				return nil, err
			}
			if points, ok := mine[i].points[s]; ok {
				found[s] = points
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return found, nil
}

// join returns the batch of each series, and adds the series to a new one if necessary.
func (b *batcher) join(ctx context.Context, period int, series []otc.Series, notBefore time.Time) []*batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if notBefore = notAfter(notBefore, now); now.Sub(notBefore) > pointsUsableFor {
		notBefore = now.Add(-pointsUsableFor)
	}
	mine := make([]*batch, 0, len(series))
	for _, s := range series {
		x := b.latest[seriesKey{s, period}]
		if x == nil || x.before(notBefore) {
			x = b.add(ctx, seriesKey{s, period})
		}
		mine = append(mine, x)
	}
	return mine
}

// add puts a series into the pending batch of its period. The caller holds b.mu.
func (b *batcher) add(ctx context.Context, m seriesKey) *batch {
	x := b.pending[m.period]
	if x == nil {
		x = &batch{done: make(chan struct{})}
		b.pending[m.period] = x
		time.AfterFunc(batchDelay, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.begin(ctx, x, m.period)
		})
	}
	x.series = append(x.series, m.Series)
	b.latest[m] = x
	if len(x.series) == b.size {
		b.begin(ctx, x, m.period)
	}
	return x
}

// begin sends a batch unless it was sent before. The caller holds b.mu. No caller's context ends the request, because
// others wait for it too; it has its own deadline.
func (b *batcher) begin(ctx context.Context, x *batch, period int) {
	if !x.begun.IsZero() {
		return
	}
	x.begun = b.now()
	delete(b.pending, period)
	go func() {
		defer close(x.done)
		x.points, x.failed = b.readEach(context.WithoutCancel(ctx), x.series, period)
		for s := range x.failed {
			b.forget(x, period, s) // so that the next caller reads again
		}
		time.AfterFunc(pointsUsableFor+batchDelay, func() { b.forget(x, period, x.series...) })
	}()
}

// readEach reads series in one request. If the cloud rejects that request, it reads each series alone.
func (b *batcher) readEach(ctx context.Context, series []otc.Series,
	period int) (found map[otc.Series][]otc.Datapoint, failed map[otc.Series]error) {
	failed = make(map[otc.Series]error)
	found, err := b.read(ctx, series, period)
	switch {
	case err == nil:
		return found, nil
	case len(series) == 1 || !isRejected(err):
		for _, s := range series {
			failed[s] = err
		}
		return nil, failed
	}
	found = make(map[otc.Series][]otc.Datapoint, len(series))
	for _, s := range series {
		points, err := b.read(ctx, []otc.Series{s}, period)
		if err != nil {
			failed[s] = err
		}
		maps.Copy(found, points)
	}
	return found, failed
}

// isRejected reports whether the cloud rejects the content of a request. It does not if the cloud is unavailable, or if
// the credentials or the rate are the problem, because that would be the same for each part of the request.
func isRejected(err error) bool {
	e, ok := errors.AsType[*otc.Error](err)
	if !ok || errors.Is(err, otc.ErrUnavailable) {
		return false
	}
	return e.Status >= 400 && e.Status < 500 && e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden
}

// before reports whether the batch was sent before t.
func (x *batch) before(t time.Time) bool { return !x.begun.IsZero() && x.begun.Before(t) }

// forget drops the datapoints of some series of a batch, except of those that a later batch has read.
func (b *batcher) forget(x *batch, period int, series ...otc.Series) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range series {
		if key := (seriesKey{s, period}); b.latest[key] == x {
			delete(b.latest, key)
		}
	}
}
