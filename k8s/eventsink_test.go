// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// In a storm of alarms, the patches go first.
func TestEventsAreSentOneAfterTheOther(t *testing.T) {
	const storm = 50
	synctest.Test(t, func(t *testing.T) {
		var underWay, sent atomic.Int32
		answer := make(chan struct{})
		c, err := connect(t, func(r *http.Request) (int, string) {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/events") {
				return empty(r)
			}
			underWay.Add(1)
			<-answer
			underWay.Add(-1)
			sent.Add(1)
			return http.StatusCreated, `{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"e"}}`
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		defer c.Close()
		if err := c.events.start(ctx); err != nil {
			t.Fatal(err)
		}
		for n := range storm {
			c.Event(&autopilot.Target{Namespace: "default", Name: fmt.Sprintf("db-%d", n)}, nil, autopilot.Event{Reason: "GrowVolume", Action: "GrowVolume", Change: true})
		}
		synctest.Wait()
		if n := underWay.Load(); n != eventsAtATime {
			t.Errorf("%d requests are under way, want %d", n, eventsAtATime)
		}
		if n := len(c.events.queue); n < storm-2*eventsAtATime {
			t.Errorf("%d events wait here, want nearly all of %d: the library takes more memory for each", n, storm)
		}
		close(answer)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := sent.Load(); n != storm {
			t.Errorf("%d events were sent, want all %d", n, storm)
		}
	})
}
