package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

const (
	// gatherFor is how long the first who asks waits for others: Cloud Eye takes ten series in one call, and is slow
	// enough for nobody to notice. While one comes after the other, each next one waits twice as long, up to gatherMost.
	gatherFor  = 50 * time.Millisecond
	gatherMost = 2 * time.Second
	// keptFor is how long a series is not read again, unless there is news of it. Raw data comes once a minute, but our own
	// patch is a reason to look once more, and so is all that the operator then does.
	keptFor = 30 * time.Second
)

// batches reads datapoints for all who ask at about the same time, of one period each: a call that is full goes at once,
// another one waits for company.
type batches struct {
	read func(ctx context.Context, series []otc.Series, period int) (map[otc.Series][]otc.Datapoint, error)
	now  func() time.Time

	mu     sync.Mutex
	queues map[int]*gathering // by period
}

// gathering is what is known of the series of one period.
type gathering struct {
	latest map[otc.Series]*batch
	next   *batch // not full, not begun; or nil
	begun  time.Time
	pause  time.Duration
}

type batch struct {
	period int
	series []otc.Series
	begun  bool
	made   time.Time // when it was begun, on the clock; the pauses are real
	done   chan struct{}
	points map[otc.Series][]otc.Datapoint
	err    error
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
	q, now := b.queues[period], b.now()
	if q == nil {
		q = &gathering{latest: make(map[otc.Series]*batch)}
		b.queues[period] = q
	}
	mine := make([]*batch, 0, len(series))
	for _, s := range series {
		x := q.latest[s]
		if x == nil || !x.serves(now, notBefore) {
			x = b.add(ctx, q, period, s)
		}
		mine = append(mine, x)
	}
	return mine
}

func (b *batches) add(ctx context.Context, q *gathering, period int, s otc.Series) *batch {
	if q.next == nil {
		q.next = b.open(ctx, q, period)
	}
	x := q.next
	x.series = append(x.series, s)
	q.latest[s] = x
	if len(x.series) == otc.SeriesPerQuery {
		b.begin(ctx, q, x)
	}
	return x
}

func (b *batches) open(ctx context.Context, q *gathering, period int) *batch {
	now := b.now()
	maps.DeleteFunc(q.latest, func(_ otc.Series, x *batch) bool { return !x.serves(now, time.Time{}) })
	x := &batch{period: period, done: make(chan struct{})}
	q.pause = min(2*q.pause, gatherMost)
	if time.Since(q.begun) > gatherMost {
		q.pause = gatherFor
	}
	time.AfterFunc(q.pause, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.begin(ctx, q, x)
	})
	return x
}

// begin reads, once. It belongs to nobody in particular, so nobody's deadline ends it.
func (b *batches) begin(ctx context.Context, q *gathering, x *batch) {
	if x.begun {
		return
	}
	x.begun, x.made, q.begun, q.next = true, b.now(), time.Now(), nil
	go func() {
		defer close(x.done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedLimit)
		defer cancel()
		x.points, x.err = b.read(ctx, slices.Clone(x.series), x.period)
	}()
}

// serves reports whether who asks now, for what was read at that time or later, may have what it holds or will hold.
func (x *batch) serves(now, notBefore time.Time) bool {
	if !x.begun {
		return true
	}
	select {
	case <-x.done:
		return x.err == nil && now.Sub(x.made) < keptFor && !x.made.Before(notBefore)
	default:
		return !x.made.Before(notBefore)
	}
}
