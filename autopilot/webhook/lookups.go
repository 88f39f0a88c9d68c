package webhook

import (
	"context"
	"errors"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// lookups bounds how often the API server is asked for what the cache lacks, and how many messages wait for that.
type lookups struct {
	places *semaphore.Weighted
	rate   *rate.Limiter
}

func newLookups() lookups {
	return lookups{semaphore.NewWeighted(lookupPlaces), rate.NewLimiter(lookupsPerSec, lookupsPerSec)}
}

// begin waits until one more look-up may be made; end frees its place.
func (l lookups) begin(ctx context.Context) (end func(), err error) {
	if !l.places.TryAcquire(1) {
		return nil, errors.New("too many at a time")
	}
	end = func() { l.places.Release(1) }
	if err := l.rate.Wait(ctx); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// acquire takes one place, waiting for slotWait at most. It reports whether it got one.
func acquire(ctx context.Context, s *semaphore.Weighted) bool {
	if s.TryAcquire(1) {
		return true
	}
	wait, done := context.WithTimeout(ctx, slotWait)
	defer done()
	return s.Acquire(wait, 1) == nil
}
