// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// cloudEye returns one point for each series, dated at the time of the call. It allows five calls per second.
type cloudEye struct {
	limit *rate.Limiter
	mu    sync.Mutex
	calls []int // numbers of series
}

func newCloudEye() *cloudEye { return &cloudEye{limit: rate.NewLimiter(5, 5)} }

func (c *cloudEye) read(ctx context.Context, series []Series, period int) (map[Series][]autopilot.Point, error) {
	if err := c.limit.Wait(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, len(series))
	points := map[Series][]autopilot.Point{}
	for _, s := range series {
		points[s] = []autopilot.Point{{Time: time.Now(), Value: float64(period)}}
	}
	return points, nil
}

func (c *cloudEye) batches() *batcher { return newBatcher(c.read, time.Now) }

func numbered(i int) Series { return Series{Metric: "m", Value: strconv.Itoa(i)} }

// readAll reads one series for each of n databases, whose requests arrive evenly over some time. It returns how long
// the last one took.
func (c *cloudEye) readAll(t *testing.T, b *batcher, n int, over time.Duration) (took time.Duration) {
	start := time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			time.Sleep(time.Duration(i) * over / time.Duration(n))
			s := numbered(i)
			if read := b.get(t.Context(), 1, []Series{s, s}, time.Time{})[s]; read.Err != nil || len(read.Points) != 1 {
				t.Errorf("%+v", read)
			}
		})
	}
	all.Wait()
	return time.Since(start)
}

// At any rate of arrival, a storm causes few calls that are not full, and no database waits long.
func TestBatcherFillsRequestsInAStorm(t *testing.T) {
	for _, over := range []time.Duration{0, 2 * time.Second, 10 * time.Second, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloudEye()
			took := c.readAll(t, c.batches(), 400, over)
			if len(c.calls) > 46 {
				t.Errorf("400 series over %s: %d calls (%v)", over, len(c.calls), c.calls)
			}
			if most := max(over+batchDelay+time.Second, 8*time.Second); took > most {
				t.Errorf("400 series over %s took %s, want at most %s", over, took, most)
			}
		})
	}
}

func TestBatcherReadsAgainAfter30SecondsAndAfterNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloudEye()
		b := c.batches()
		checkRead := func(when string, period int, notBefore time.Time, calls int) {
			t.Helper()
			got := b.get(t.Context(), period, []Series{numbered(1)}, notBefore)[numbered(1)]
			read, err := got.Points, got.Err
			if err != nil || len(read) != 1 || read[0].Value != float64(period) || read[0].Time.Before(notBefore) ||
				len(c.calls) != calls {
				t.Errorf("%s: %v, %v, in %d calls; want %d", when, read, err, len(c.calls), calls)
			}
		}
		checkRead("first", 1, time.Time{}, 1)
		checkRead("another period", 300, time.Time{}, 2)
		time.Sleep(pointsUsableFor - batchDelay)
		checkRead("within 30 seconds", 1, time.Time{}, 2)
		time.Sleep(2 * time.Second)
		checkRead("later", 1, time.Time{}, 3)
		time.Sleep(time.Second)
		news := time.Now()
		checkRead("after news", 1, news, 4)
		checkRead("after the same news", 1, news, 4)
	})
}

// One series that the cloud rejects must not hide the evidence of nine other databases. A failure that all series share
// must not be repeated for each of them.
func TestBatcherReadsTheOtherSeriesOfARejectedRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		err           error
		failed, calls int
	}{
		"one series is rejected":        {&Error{Status: http.StatusBadRequest}, 1, 11},
		"one series has NaN":            {&json.SyntaxError{Offset: 2}, 1, 11},
		"a proxy answers with its page": {&json.SyntaxError{Offset: 1}, 10, 1},
		"the cloud is unavailable":      {&Error{Status: http.StatusServiceUnavailable}, 10, 1},
		"too many requests":             {&Error{Status: http.StatusTooManyRequests}, 10, 1},
		"the login is refused":          {&Error{Status: http.StatusUnauthorized}, 10, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, calls := newCloudEye(), 0
			b := newBatcher(func(ctx context.Context, series []Series, period int) (map[Series][]autopilot.Point, error) {
				calls++
				if slices.Contains(series, numbered(3)) {
					return nil, tc.err
				}
				return c.read(ctx, series, period)
			}, time.Now)
			var all sync.WaitGroup
			var failed atomic.Int32
			for i := range SeriesPerQuery {
				all.Go(func() {
					read := b.get(t.Context(), 1, []Series{numbered(i)}, time.Time{})[numbered(i)]
					if read.Err != nil {
						failed.Add(1)
					} else if len(read.Points) != 1 || i == 3 {
						t.Errorf("%s: series %d has %v", name, i, read)
					}
				})
			}
			all.Wait()
			if int(failed.Load()) != tc.failed || calls != tc.calls {
				t.Errorf("%s: %d of 10 failed in %d calls; want %d in %d", name, failed.Load(), calls, tc.failed, tc.calls)
			}
		})
	}
}

// A read runs on a goroutine of its own, where only the read itself can recover a panic. The controller counts and logs
// a PanicError.
func TestPanicInASharedReadIsAPanicErrorOfItsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := newList(time.Now, func(context.Context) (int, error) { panic("broken list") })
		points := newBatcher(func(context.Context, []Series, int) (map[Series][]autopilot.Point, error) {
			panic("broken points")
		}, time.Now)
		_, listErr := list.Get(t.Context(), project{}, time.Now())
		read := points.get(t.Context(), 1, []Series{numbered(1)}, time.Now())[numbered(1)]
		for _, err := range []error{listErr, read.Err} {
			if _, ok := errors.AsType[*autopilot.PanicError](err); !ok {
				t.Errorf("%v, want a PanicError", err)
			}
		}
	})
}

// After a long read, a list rests, so that other callers get requests. Callers during the rest share the next read.
func TestListRestsAfterLongRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		s := newList(time.Now, func(context.Context) (int64, error) {
			time.Sleep(5 * time.Second) // 25 pages at five per second
			return reads.Add(1), nil
		})
		start := time.Now()
		var all sync.WaitGroup
		for i := range 400 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 30 * time.Second / 400)
				asked := time.Now()
				if _, err := s.Get(t.Context(), project{}, asked); err != nil {
					t.Error(err)
				}
				if waited := time.Since(asked); waited > 20*time.Second {
					t.Errorf("waited %s", waited)
				}
			})
		}
		all.Wait()
		if reads.Load() > 4 {
			t.Errorf("%d readings in %s, want at most 4", reads.Load(), time.Since(start))
		}
		if got, want := usableFor(s), 2*(5*time.Second+maxRest); got != want {
			t.Errorf("a list is usable for %s, want %s", got, want)
		}
	})
}
