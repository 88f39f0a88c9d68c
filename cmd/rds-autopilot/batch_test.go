package main

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

func TestWhoAsksAtTheSameTimeIsServedByOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads, most atomic.Int64
		b := batches{gathering: map[int]*batch{}, read: func(_ context.Context, series []otc.Series, period int) (map[otc.Series][]otc.Datapoint, error) {
			reads.Add(1)
			most.Store(max(most.Load(), int64(len(series))))
			points := map[otc.Series][]otc.Datapoint{}
			for _, s := range series {
				points[s] = []otc.Datapoint{{Average: float64(period)}}
			}
			return points, nil
		}}
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				s := otc.Series{Metric: "m", Value: strconv.Itoa(i)}
				period := []int{1, 300}[i%2]
				points, err := b.get(t.Context(), period, []otc.Series{s, s})
				if err != nil || len(points[s]) != 1 || points[s][0].Average != float64(period) {
					t.Errorf("%v, %v", points[s], err)
				}
			})
		}
		all.Wait()
		if reads.Load() != 2 || most.Load() != 20 {
			t.Errorf("%d readings of at most %d series, want one for each period with 20", reads.Load(), most.Load())
		}
		time.Sleep(time.Second)
		if _, err := b.get(t.Context(), 1, []otc.Series{{Metric: "m"}}); err != nil || reads.Load() != 3 {
			t.Errorf("later: %d readings, %v; nothing is kept", reads.Load(), err)
		}
	})
}
