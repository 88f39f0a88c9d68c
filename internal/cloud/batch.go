package cloud

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

const (
	// gatherFor is how long the first series of a call waits for others: Cloud Eye takes ten in one call, and an alarm is
	// minutes old when it comes.
	gatherFor = time.Second
	// pointsFor is how long a series is not read again, unless there is news of it. Raw data comes once a minute, but our own
	// patch is a reason to look once more, and so is all that the operator then does.
	pointsFor = 30 * time.Second
)

// batches reads datapoints for all callers of about the same time: a call that is full goes at once, another one is gathered.
type batches struct {
	read func(ctx context.Context, series []otc.Series, period int) (map[otc.Series][]otc.Datapoint, error)
	now  func() time.Time

	mu     sync.Mutex
	latest map[measured]*batch
	next   map[int]*batch // by period: neither full nor begun
}

// measured is a series in one period.
type measured struct {
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

func newBatches(read func(context.Context, []otc.Series, int) (map[otc.Series][]otc.Datapoint, error), now func() time.Time) *batches {
	return &batches{read: read, now: now, latest: make(map[measured]*batch), next: make(map[int]*batch)}
}

// get returns the datapoints of these series, read at that time or later; one without any is missing.
func (b *batches) get(ctx context.Context, period int, series []otc.Series, notBefore time.Time) (map[otc.Series][]otc.Datapoint, error) {
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
func (b *batches) join(ctx context.Context, period int, series []otc.Series, notBefore time.Time) []*batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if notBefore = earlier(notBefore, now); now.Sub(notBefore) > pointsFor {
		notBefore = now.Add(-pointsFor)
	}
	mine := make([]*batch, 0, len(series))
	for _, s := range series {
		x := b.latest[measured{s, period}]
		if x == nil || x.before(notBefore) {
			x = b.add(ctx, measured{s, period})
		}
		mine = append(mine, x)
	}
	return mine
}

func (b *batches) add(ctx context.Context, m measured) *batch {
	x := b.next[m.period]
	if x == nil {
		x = &batch{done: make(chan struct{})}
		b.next[m.period] = x
		b.forget(func(y *batch) bool { return y.before(b.now().Add(-pointsFor)) })
		time.AfterFunc(gatherFor, func() {
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
func (b *batches) begin(ctx context.Context, x *batch, period int) {
	if !x.begun.IsZero() {
		return
	}
	x.begun = b.now()
	delete(b.next, period)
	go func() {
		defer close(x.done)
		if x.points, x.err = b.read(context.WithoutCancel(ctx), x.series, period); x.err == nil {
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.forget(func(y *batch) bool { return y == x }) // the next caller reads again
	}()
}

// before reports whether what it holds, or will hold, is older than that.
func (x *batch) before(t time.Time) bool { return !x.begun.IsZero() && x.begun.Before(t) }

func (b *batches) forget(which func(*batch) bool) {
	maps.DeleteFunc(b.latest, func(_ measured, x *batch) bool { return which(x) })
}
