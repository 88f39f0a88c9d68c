// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

const (
	// batchDelay is how long the first series of a call waits for others: Cloud Eye takes ten in one call, and an alarm is
	// minutes old when it comes.
	batchDelay = time.Second
	// pointsUsableFor is how long a series is not read again, unless there is news of it. Raw data comes once a minute, but our own
	// patch is a reason to look once more, and so is all that the operator then does.
	pointsUsableFor = 30 * time.Second
)

// batcher reads datapoints for all callers of about the same time: a call that is full goes at once, another one waits for more.
type batcher struct {
	read func(ctx context.Context, series []otc.Series, period int) (map[otc.Series][]otc.Datapoint, error)
	now  func() time.Time

	mu      sync.Mutex
	latest  map[seriesKey]*batch
	pending map[int]*batch // by period: neither full nor begun
}

// seriesKey is a series in one period.
type seriesKey struct {
	otc.Series
	period int
}

// batch is what one call reads.
type batch struct {
	series []otc.Series
	begun  time.Time // zero: not yet
	done   chan struct{}
	points map[otc.Series][]otc.Datapoint
	err    error
}

func newBatcher(read func(context.Context, []otc.Series, int) (map[otc.Series][]otc.Datapoint, error), now func() time.Time) *batcher {
	return &batcher{read: read, now: now, latest: make(map[seriesKey]*batch), pending: make(map[int]*batch)}
}

// get returns the datapoints of these series, read at that time or later; one without any is missing.
func (b *batcher) get(ctx context.Context, period int, series []otc.Series, notBefore time.Time) (map[otc.Series][]otc.Datapoint, error) {
	found := make(map[otc.Series][]otc.Datapoint, len(series))
	mine := b.join(ctx, period, series, notBefore)
	for i, s := range series {
		select {
		case <-mine[i].done:
			if mine[i].err != nil {
				return nil, mine[i].err
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

// join returns the batch of each series.
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
	if len(x.series) == otc.SeriesPerQuery {
		b.begin(ctx, x, m.period)
	}
	return x
}

// begin reads, once. No caller's deadline ends it; the call ends by itself.
func (b *batcher) begin(ctx context.Context, x *batch, period int) {
	if !x.begun.IsZero() {
		return
	}
	x.begun = b.now()
	delete(b.pending, period)
	go func() {
		defer close(x.done)
		x.points, x.err = b.read(context.WithoutCancel(ctx), x.series, period)
		if x.err != nil {
			b.forget(x, period) // the next caller reads again
			return
		}
		time.AfterFunc(pointsUsableFor+batchDelay, func() { b.forget(x, period) })
	}()
}

// before reports whether what it holds, or will hold, is older than that.
func (x *batch) before(t time.Time) bool { return !x.begun.IsZero() && x.begun.Before(t) }

// forget drops what a call has read, where no other has read it since.
func (b *batcher) forget(x *batch, period int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range x.series {
		if key := (seriesKey{s, period}); b.latest[key] == x {
			delete(b.latest, key)
		}
	}
}
