package main

import (
	"context"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// gatherFor is how long the first who asks waits for others: Cloud Eye takes ten series in one call, and is slow enough
// for nobody to notice.
const gatherFor = 50 * time.Millisecond

// batches reads datapoints for all who ask at about the same time, of one period each.
type batches struct {
	read func(ctx context.Context, series []otc.Series, period int) (map[otc.Series][]otc.Datapoint, error)

	mu        sync.Mutex
	gathering map[int]*batch // by period
}

type batch struct {
	series map[otc.Series]bool
	done   chan struct{}
	points map[otc.Series][]otc.Datapoint
	err    error
}

// get returns the datapoints of these series; those of others may be among them.
func (b *batches) get(ctx context.Context, period int, series []otc.Series) (map[otc.Series][]otc.Datapoint, error) {
	mine := b.join(ctx, period, series)
	select {
	case <-mine.done:
		return mine.points, mine.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *batches) join(ctx context.Context, period int, series []otc.Series) *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.gathering[period]
	if g == nil {
		g = &batch{series: make(map[otc.Series]bool), done: make(chan struct{})}
		b.gathering[period] = g
		go b.run(context.WithoutCancel(ctx), period, g)
	}
	for _, s := range series {
		g.series[s] = true
	}
	return g
}

// run waits for company, then reads. It belongs to nobody in particular, so nobody's deadline ends it.
func (b *batches) run(ctx context.Context, period int, g *batch) {
	defer close(g.done)
	ctx, cancel := context.WithTimeout(ctx, sharedLimit)
	defer cancel()
	timer := time.NewTimer(gatherFor)
	defer timer.Stop()
	<-timer.C
	b.mu.Lock()
	delete(b.gathering, period)
	b.mu.Unlock()
	list := make([]otc.Series, 0, len(g.series))
	for s := range g.series {
		list = append(list, s)
	}
	g.points, g.err = b.read(ctx, list, period)
}
