// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
)

// sweepAtMost is the longest time between two sweeps, the jitter included.
const sweepAtMost = 5*time.Minute + 30*time.Second

// What a decision does not need must not delay it: SMN can hang for hours while volumes run full. The time is from the
// alarm in Cloud Eye to the patch, of the slowest of all databases, at the default --cloud-rate.
func TestAStormOfAlarmsWhileSMNHangs(t *testing.T) {
	for _, c := range []struct {
		name   string
		lost   bool // every message, too
		within time.Duration
	}{
		{name: "the messages come", within: stormDecided}, // as where all is well
		{name: "the messages are lost", lost: true, within: sweepAtMost + stormDecided},
	} {
		t.Run(c.name, func(t *testing.T) {
			level.InLongBubble(t, func(t *testing.T) {
				var broken atomic.Bool // from the storm on
				w := newStorm(t, stormDatabases, otcsim.Options{
					Fault: func(r *http.Request) *otcsim.Fault {
						if service, _ := otcsim.OperationOf(r); service == "smn" && broken.Load() {
							return &otcsim.Fault{Hang: true}
						}
						return nil
					},
					DeliveryFault: func(otcsim.Delivery) otcsim.DeliveryFault { return otcsim.DeliveryFault{Drop: c.lost && broken.Load()} },
				})
				if n := w.sim.Count("rds", "ShowAutoScale"); n > 0 {
					t.Errorf("%d look-ups of the cloud's own storage autoscaling while arming: no decision needs one", n)
				}
				broken.Store(true)
				slowest := w.stormPatched()
				if n := w.sim.Count("rds", "ShowAutoScale"); n > 0 {
					t.Errorf("%d look-ups of the cloud's own storage autoscaling in the storm: no decision needs one", n)
				}
				if slowest > c.within {
					t.Errorf("the slowest of %d volumes is patched %v after its alarm, want %v at most", stormDatabases, slowest, c.within)
				}
				t.Logf("all are patched within %v", slowest.Round(100*time.Millisecond))
			})
		})
	}
}

// stormPatched lets the alarms of all volumes come at the same time, and returns how long the slowest waits for its patch.
func (w *week) stormPatched() (slowest time.Duration) {
	const patience = 20 * time.Minute
	w.latency = cloudLatency
	w.kube.SetWriteLatency(writeLatency)
	time.Sleep(time.Until(time.Now().Truncate(5 * time.Minute).Add(10*time.Minute - time.Second)))
	stop := w.start(app.Defaults().CloudRate)
	defer func() {
		stop()
		time.Sleep(5 * time.Minute) // for what is shared and belongs to no round: a bubble waits for nobody
	}()
	time.Sleep(20 * time.Minute) // whatever a sweep leaves behind is there by now
	w.sim.ResetRequests()
	w.load(func(otcsim.Workload) bool { return true }, []otcsim.Workload{{UsedGB: 93}})
	begin := w.firstAlarm()
	for time.Since(begin) < patience && w.patchedDatabases() < stormDatabases {
		time.Sleep(time.Second)
	}
	alarmed := w.alarmed()
	for _, a := range w.kube.Autopilots() {
		at := alarmed[a.Status.Alarms.TopicURN]
		w.book.mu.Lock()
		patches := w.book.page(a.Name).patches
		w.book.mu.Unlock()
		if len(patches) == 0 {
			return patience
		}
		slowest = max(slowest, patches[0].at.Sub(at))
	}
	return slowest
}

func (w *week) patchedDatabases() (n int) {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	for _, d := range w.databases {
		if len(w.book.page(d.name).patches) > 0 {
			n++
		}
	}
	return n
}
