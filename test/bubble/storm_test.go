// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const (
	// At the default --cloud-rate, one more call per database would take longer than stormDecided.
	stormDatabases = 100
	stormDecided   = 10 * time.Second                       // after the message was sent
	stormCalls     = 60 + stormDatabases/otc.SeriesPerQuery // a sweep may come in that time, and looks at every volume
	cloudLatency   = 200 * time.Millisecond
	writeLatency   = 50 * time.Millisecond
)

// A shared cause, such as a deployment, raises the alarms of a whole fleet. At the default --cloud-rate and with the latencies
// of a real cloud and API server, the service decides on all of them in time and with few calls. SMN may hang meanwhile.
func TestAlarmStormIsDecidedInTime(t *testing.T) {
	storage, cpu, memory := simcloud.Workload{UsedGB: 93}, simcloud.Workload{UsedGB: 10, CPUDemand: 1.95}, simcloud.Workload{UsedGB: 10, MemoryDemandGB: 7.8}
	for _, c := range []struct {
		name   string
		loads  []simcloud.Workload // in turn
		spread time.Duration       // of the messages on their way
		hangs  bool                // SMN does not answer the service
		want   map[string]int      // first decisions, by action and reason
	}{
		{name: "all volumes at once", loads: []simcloud.Workload{storage}, want: map[string]int{"GrowVolume AlarmInForce": stormDatabases}},
		{name: "one after the other", loads: []simcloud.Workload{storage}, spread: 20 * time.Second, want: map[string]int{"GrowVolume AlarmInForce": stormDatabases}},
		{name: "while SMN hangs", loads: []simcloud.Workload{storage}, hangs: true, want: map[string]int{"GrowVolume AlarmInForce": stormDatabases}},
		{name: "every kind", loads: []simcloud.Workload{storage, cpu, storage, memory}, want: map[string]int{
			"GrowVolume AlarmInForce": stormDatabases / 2, "ChangeFlavor AlarmInForce": 3, "None FleetBrake": stormDatabases/2 - 3,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			level.InLongBubble(t, func(t *testing.T) {
				var hangs atomic.Bool
				w := newStorm(t, stormDatabases, simcloud.Options{DeliveryFault: spreadOver(c.spread), Fault: func(r *http.Request) *simcloud.Fault {
					if service, _ := simcloud.OperationOf(r); service == "smn" && hangs.Load() {
						return &simcloud.Fault{Hang: true}
					}
					return nil
				}})
				hangs.Store(c.hangs)
				calls := w.rage(c.loads, c.spread+stormDecided)
				decisions, slowest := w.firstDecisions()
				if !maps.Equal(decisions, c.want) {
					t.Errorf("decided %v, want %v", decisions, c.want)
				}
				if slowest > c.spread+stormDecided || calls > stormCalls {
					t.Errorf("decided within %v by %d calls, want %v and %d", slowest, calls, c.spread+stormDecided, stormCalls)
				}
				t.Logf("all are decided within %v, by %d calls", slowest.Round(100*time.Millisecond), calls)
			})
		})
	}
}

// spreadOver delays messages by up to that long, each database's by its own time.
func spreadOver(spread time.Duration) func(simcloud.Delivery) simcloud.DeliveryFault {
	return func(d simcloud.Delivery) simcloud.DeliveryFault {
		lot := time.Duration(crc32.ChecksumIEEE([]byte(d.TopicURN)) % 1000)
		return simcloud.DeliveryFault{Delay: spread * lot / 1000}
	}
}

// storm is a fleet of equal databases.
type storm struct {
	*fleet
	ids []string
}

// newStorm returns a world of so many databases, armed and at rest.
func newStorm(t *testing.T, databases int, o simcloud.Options) *storm {
	o.Settings.RuleQuota = 3 * databases
	w := &storm{fleet: newFleetIn(t, o)}
	for i := range databases {
		w.ids = append(w.ids, w.database("default", fmt.Sprintf("db-%03d", i), instance(twoVCPUs, 100, 10)).ID)
	}
	w.runCloud()
	s := w.start(flags{sweep: 5 * time.Minute})
	w.until("all databases are armed", func() bool { return w.armed(databases) })
	s.stop()
	return w
}

// distant is the cloud with the latency of a real one.
type distant struct{ http.RoundTripper }

func (d distant) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(cloudLatency)
	return d.RoundTripper.RoundTrip(r)
}

// rage lets all alarms come at the same full five minutes, and counts the calls within the time in which they are to be decided.
func (w *storm) rage(loads []simcloud.Workload, within time.Duration) (calls int) {
	w.kube.SetWriteLatency(writeLatency)
	time.Sleep(time.Until(time.Now().Truncate(5 * time.Minute).Add(10*time.Minute - time.Second)))
	defer w.start(flags{sweep: 5 * time.Minute, recheck: 30 * time.Second, maxAge: time.Hour, rate: app.Defaults().CloudRate, transport: distant{w.sim}}).stop()
	// Flavors are measured in periods of five minutes, three of which make an alarm; volumes minute by minute, five times.
	w.load(func(load simcloud.Workload) bool { return load.UsedGB < 90 }, loads)
	time.Sleep(10 * time.Minute)
	w.load(func(load simcloud.Workload) bool { return load.UsedGB >= 90 }, loads)
	w.sim.ResetRequests()
	begin := w.firstAlarm()
	time.Sleep(time.Until(begin.Add(2 * within)))
	for _, r := range w.sim.Requests() {
		if !r.Time.Before(begin) && r.Time.Before(begin.Add(within)) {
			calls++
		}
	}
	return calls
}

func (w *storm) load(which func(simcloud.Workload) bool, loads []simcloud.Workload) {
	for i, id := range w.ids {
		if load := loads[i%len(loads)]; which(load) {
			w.must(w.sim.SetWorkload(id, load))
		}
	}
}

// alarmed are the times at which the first alarm of each database was sent, by topic.
func (w *storm) alarmed() map[string]time.Time {
	times := map[string]time.Time{}
	for _, d := range w.sim.Deliveries() {
		if at, ok := times[d.TopicURN]; d.Type == simcloud.TypeNotification && (!ok || d.Created.Before(at)) {
			times[d.TopicURN] = d.Created
		}
	}
	return times
}

// firstAlarm waits until all alarms are sent, and returns when the first was.
func (w *storm) firstAlarm() (first time.Time) {
	for len(w.alarmed()) == 0 {
		time.Sleep(time.Second)
	}
	time.Sleep(time.Second)
	times := w.alarmed()
	if len(times) != len(w.ids) {
		w.t.Fatalf("%d databases have an alarm at the same time, want all", len(times))
	}
	for _, at := range times {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// firstDecisions counts the first decision of each database by action and reason, and says how long the slowest took.
func (w *storm) firstDecisions() (counts map[string]int, slowest time.Duration) {
	counts = map[string]int{}
	alarmed := w.alarmed()
	for _, a := range w.autopilots() {
		records := a.Status.Decisions
		if len(records) == 0 {
			counts["nothing"]++
			continue
		}
		first := records[len(records)-1]
		counts[first.Action+" "+first.Reason]++
		slowest = max(slowest, first.Time.Sub(alarmed[a.Status.Alarms.TopicURN]))
	}
	return counts, slowest
}
