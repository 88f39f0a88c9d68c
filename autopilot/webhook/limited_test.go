// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestInventedTopicsAreLimitedAndNeverUnavailable posts 10 unsigned messages a second through the real client. Their topics
// have a hyphen, so a look-up may need a list of the namespace, and these are limited.
func TestInventedTopicsAreLimitedAndNeverUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, b := newKube(t, 0), newBench(t)
		k.watch()
		defer k.stop()
		b.Store = k
		statuses := map[int]int{}
		for i := range 100 {
			w := b.post(signedBody(map[string]string{
				"topic_urn": fmt.Sprintf("urn:smn:eu-de:%s:autopilot_default_an-invented-%d_12345678", project, i), "signature": "c2ln",
			}))
			statuses[w.Code]++
			time.Sleep(time.Second / 10)
		}
		if n := b.counted(resultUnavailable); n > 0 {
			t.Errorf("%d of 100 count as unavailable", n)
		}
		if n := b.counted(resultLimited); n == 0 || n != statuses[http.StatusServiceUnavailable] || n+statuses[http.StatusOK] != 100 {
			t.Errorf("%d are limited, answered %v", n, statuses)
		}
	})
}
