// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	// firstPause is the pause before the first retry; each further one is twice as long.
	firstPause = 500 * time.Millisecond
	// maxPause is the longest pause. A longer Retry-After is an error at once, because a caller cannot wait so long.
	maxPause = 20 * time.Second
)

// retryAfterFault reports whether to retry a failed request, and after which pause. A POST is retried only if the cloud
// refused it with 429, because otherwise the cloud may have carried it out.
func (c call) retryAfterFault(method string, attempt int, fault *Error) (time.Duration, bool) {
	if attempt >= attempts || c.ctx.Err() != nil {
		return 0, false
	}
	repeatable := method != http.MethodPost || c.t.ops[c.op].read
	switch fault.Status {
	case http.StatusTooManyRequests:
	case 0:
		if !repeatable || !fault.transient() {
			return 0, false
		}
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if !repeatable {
			return 0, false
		}
	default:
		return 0, false
	}
	pause := firstPause << (attempt - 1)
	pause = max(pause/2+rand.N(pause), fault.retryAfter)
	return pause, pause <= maxPause
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil {
		return 0
	}
	return time.Duration(min(max(seconds, 0), 86400)) * time.Second
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
