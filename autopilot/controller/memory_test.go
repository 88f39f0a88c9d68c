// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

func TestMemoryIsDroppedWithTheRdsAutopilot(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		size := func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.memories)
		}
		if size() != 1 {
			t.Fatalf("%d memories of one database", size())
		}
		during := make(chan struct{})
		w.duringCloud = func() { <-during } // a round waits for the cloud meanwhile
		stop := w.lead(c)
		defer stop()
		synctest.Wait()
		w.remove(w.rdss())
		w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Finalizers = nil })
		w.remove(w.raps())
		close(during)
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.rap() != nil || size() != 0 {
			t.Errorf("%d memories after the RdsAutopilot was deleted: %+v", size(), w.rap())
		}
	})
}

func TestMemoryIsDroppedOnReplicaThatNoLongerLeads(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Finalizers = nil })
		w.remove(w.raps())
		if len(c.memories) != 0 {
			t.Errorf("%d memories after the RdsAutopilot was deleted", len(c.memories))
		}
	})
}
