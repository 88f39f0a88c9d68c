// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Readers of the status page, however many, must leave nine tenths of the rate to decisions.
func TestSparingCloudLeavesRateToDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers atomic.Int32
		f := &fake{service: func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, `{"topics":[]}`) }}
		c := connectTo(t, f, Options{Rate: 5})
		sparing := c.Sparing()
		time.Sleep(time.Minute) // so that both limits are unused
		for range 100 {
			go func() {
				if _, err := sparing.Topics(t.Context()); err == nil {
					answers.Add(1)
				}
			}()
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := answers.Load(); n != spareBurst+10 {
			t.Errorf("%d answers in 20 s", n)
		}
		begin := time.Now()
		for range 100 {
			if _, err := c.Topics(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took > 23*time.Second { // alone: 19 s
			t.Errorf("100 calls for decisions took %s", took)
		}
	})
}
