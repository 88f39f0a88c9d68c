// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// However many look: decisions keep nine tenths of the rate.
func TestSparingCloudLeavesRateToDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		f := &fake{service: func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, `{"topics":[]}`) }}
		c := connectTo(t, f, Options{Rate: 5})
		sparing := c.Sparing()
		time.Sleep(time.Minute) // nobody has called lately
		for range 100 {
			go func() {
				if _, err := sparing.Topics(t.Context()); err == nil {
					looks.Add(1)
				}
			}()
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := looks.Load(); n != spareBurst+10 {
			t.Errorf("%d looks in 20 s", n)
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
