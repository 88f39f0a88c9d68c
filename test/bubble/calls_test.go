// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// armMany adds equal databases and waits until all are armed. It returns the IDs of their instances.
func (f *fleet) armMany(n int) (ids []string) {
	f.t.Helper()
	for i := range n {
		ids = append(ids, f.database("default", fmt.Sprintf("db-%03d", i), instance(twoVCPUs, 100, 40)).ID)
	}
	s := f.start(flags{sweep: 10 * time.Minute})
	f.waitUntil("all are armed", func() bool { return f.areArmed(n) })
	time.Sleep(20 * time.Minute) // until every rule has data: without data the service searches for more
	s.waitIdle()
	s.stop()
	f.checkCounts(n)
	return ids
}

// checkCounts fails unless the cloud has one topic, one confirmed subscription, and three rules for each of n databases.
func (f *fleet) checkCounts(n int) {
	f.t.Helper()
	names, subscriptions := map[string]bool{}, f.sim.Subscriptions()
	for _, x := range f.sim.Rules() {
		names[x.Name] = true
	}
	isConfirmed := len(subscriptions) == 1 && subscriptions[0].Status == simcloud.Confirmed
	if topics, rules := len(f.sim.Topics()), len(f.sim.Rules()); topics != 1 || !isConfirmed || rules != 3*n || len(names) != 3*n {
		f.t.Errorf("%d databases have %d topics, the subscriptions %+v, %d rules, %d different names", n, topics, subscriptions, rules, len(names))
	}
}

// All databases share the lists, and ten share a query of used space: a sweep costs pages and not calls per database.
func TestSweepOfManyDatabasesUsesFewCalls(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		const n = 120
		f := newFleet(t, simcloud.Settings{TopicQuota: 3000, RuleQuota: 3000})
		f.armMany(n)
		f.sim.ResetRequests()
		s := f.start(flags{})
		s.waitIdle()
		s.stop()
		calls, total := map[string]int{}, 0
		for _, r := range f.sim.Requests() {
			if r.Service == "smn" || r.Service == "ces" || r.Service == "rds" {
				calls[r.Operation]++
				total++
			}
		}
		lists := []string{"ListAlarms", "ListMetrics", "BatchMetricData", "ListTopicSubscriptions", "ListInstances"}
		for operation, count := range calls {
			if !slices.Contains(lists, operation) {
				t.Errorf("%d calls of %s", count, operation)
			}
		}
		// The pages of rules, the pages of the other lists, ten databases' used space in a query of which up to two are not
		// full, and the percentages of the first databases.
		const pages, queries, percentages = (n*3/100 + 1) + 3*(n/100+1) + 1, n/10 + 2, 7
		if total > pages+queries+percentages {
			t.Errorf("a sweep of %d databases made %d calls, want at most %d: %v", n, total, pages+queries+percentages, calls)
		}
		f.checkCounts(n)
	})
}

const (
	// At the default --cloud-rate, one more call per database would take longer than stormDecided.
	stormDatabases = 100
	stormDecided   = 10 * time.Second                       // after the message was sent
	stormCalls     = 60 + stormDatabases/otc.SeriesPerQuery // a sweep may begin in that time, and reads every volume
	cloudLatency   = 200 * time.Millisecond
	writeLatency   = 50 * time.Millisecond
)

// A shared cause, such as a deployment, raises the alarms of a whole fleet. At the default --cloud-rate and with the
// latencies of a real cloud and API server, the service decides on all of them in time and with few calls.
func TestAlarmStormIsDecidedInTime(t *testing.T) {
	storage := simcloud.Workload{UsedGB: 93}
	cpu, memory := simcloud.Workload{UsedGB: 40, CPUDemand: 1.95}, simcloud.Workload{UsedGB: 40, MemoryDemandGB: 7.8}
	for name, c := range map[string]struct {
		loads  []simcloud.Workload // in turn
		spread time.Duration       // of the messages on their way
		hangs  bool                // SMN does not answer the service
		want   map[string]int      // first decisions, by action and reason
	}{
		"all volumes at once while SMN hangs": {
			loads: []simcloud.Workload{storage}, hangs: true, want: map[string]int{"GrowVolume AlarmInForce": stormDatabases},
		},
		"every kind, one after the other": {
			loads: []simcloud.Workload{storage, cpu, storage, memory}, spread: 20 * time.Second,
			want: map[string]int{
				"GrowVolume AlarmInForce":   stormDatabases / 2,
				"ChangeFlavor AlarmInForce": 3,
				"None FleetBrake":           stormDatabases/2 - 3,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			level.InLongBubble(t, func(t *testing.T) {
				var hangs atomic.Bool
				f := newFleetIn(t, simcloud.Options{
					Settings: simcloud.Settings{RuleQuota: 3 * stormDatabases}, DeliveryFault: delayedWithin(c.spread),
					Fault: func(r *http.Request) *simcloud.Fault {
						if service, _ := simcloud.OperationOf(r); service == "smn" && hangs.Load() {
							return &simcloud.Fault{Hang: true}
						}
						return nil
					},
				})
				f.runCloud()
				ids := f.armMany(stormDatabases)
				hangs.Store(c.hangs)
				calls := f.callsInStorm(ids, c.loads, c.spread+stormDecided)
				decisions, slowest := f.firstDecisions()
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

// delayedWithin delays messages by up to that long, each by its own time.
func delayedWithin(spread time.Duration) func(simcloud.Delivery) simcloud.DeliveryFault {
	return func(d simcloud.Delivery) simcloud.DeliveryFault {
		share := time.Duration(crc32.ChecksumIEEE([]byte(d.MessageID)) % 1000)
		return simcloud.DeliveryFault{Delay: spread * share / 1000}
	}
}

// slowCloud is the cloud with the latency of a real one.
type slowCloud struct{ http.RoundTripper }

func (d slowCloud) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(cloudLatency)
	return d.RoundTripper.RoundTrip(r)
}

// slowWrites is an API server whose writes take some time.
type slowWrites struct{ http.RoundTripper }

func (s slowWrites) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		time.Sleep(writeLatency)
	}
	return s.RoundTripper.RoundTrip(r)
}

// callsInStorm makes all alarms begin at the same full five minutes, and returns the number of calls to the cloud
// within the time in which they have to be decided.
func (f *fleet) callsInStorm(ids []string, loads []simcloud.Workload, within time.Duration) (calls int) {
	time.Sleep(time.Until(time.Now().Truncate(5 * time.Minute).Add(10*time.Minute - time.Second)))
	f.start(flags{
		sweep: 5 * time.Minute, recheck: 30 * time.Second, maxAge: time.Hour,
		rate: app.Defaults().CloudRate, transport: slowCloud{f.sim}, kube: slowWrites{f.kube},
	})
	set := func(isStorage bool) {
		for i, id := range ids {
			if load := loads[i%len(loads)]; load.UsedGB >= 90 == isStorage {
				f.must(f.sim.SetWorkload(id, load))
			}
		}
	}
	// Flavors are measured in periods of five minutes, and three of them raise an alarm. Volumes are measured every
	// minute, and five values raise an alarm.
	set(false)
	time.Sleep(10 * time.Minute)
	set(true)
	f.sim.ResetRequests()
	for len(f.alarmTimes()) == 0 {
		time.Sleep(time.Second)
	}
	time.Sleep(time.Second)
	times := f.alarmTimes()
	if len(times) != len(ids) {
		f.t.Fatalf("%d databases have an alarm at the same time, want all", len(times))
	}
	begin := slices.MinFunc(slices.Collect(maps.Values(times)), time.Time.Compare)
	time.Sleep(time.Until(begin.Add(2 * within)))
	for _, r := range f.sim.Requests() {
		if !r.Time.Before(begin) && r.Time.Before(begin.Add(within)) {
			calls++
		}
	}
	return calls
}

// alarmTimes returns when the first alarm of each database was sent, by the name of its RdsAutopilot.
func (f *fleet) alarmTimes() map[string]time.Time {
	times := map[string]time.Time{}
	for _, d := range f.sim.Deliveries() {
		_, name, _ := alarms.ParseRuleName(ruleNameIn(d.Body))
		if at, ok := times[name]; d.Type == simcloud.TypeNotification && name != "" && (!ok || d.Created.Before(at)) {
			times[name] = d.Created
		}
	}
	return times
}

// ruleNameIn returns the name of the rule in the body of an alarm message.
func ruleNameIn(body []byte) string {
	var envelope struct{ Message string }
	var alarm struct {
		Name string `json:"alarm_name"`
	}
	if json.Unmarshal(body, &envelope) != nil || json.Unmarshal([]byte(envelope.Message), &alarm) != nil {
		return ""
	}
	return alarm.Name
}

// firstDecisions counts the first decision of each database by action and reason, and returns how long the slowest
// took.
func (f *fleet) firstDecisions() (counts map[string]int, slowest time.Duration) {
	counts = map[string]int{}
	times := f.alarmTimes()
	for _, a := range f.autopilots() {
		first := v1alpha1.DecisionRecord{Reason: "no decision"}
		if n := len(a.Status.Decisions); n > 0 {
			first = a.Status.Decisions[n-1]
			slowest = max(slowest, first.Time.Sub(times[a.Name]))
		}
		counts[first.Action+" "+first.Reason]++
	}
	return counts, slowest
}
