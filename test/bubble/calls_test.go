// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

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
		lists := []string{"ListAlarms", "ListMetrics", "BatchMetricData", "ListTopics", "ListTopicSubscriptions", "ListInstances"}
		for operation, count := range calls {
			if !slices.Contains(lists, operation) {
				t.Errorf("%d calls of %s", count, operation)
			}
		}
		// The pages of rules, the pages of the other lists, ten databases' used space in a query of which up to two are not
		// full, and the percentages of the first databases.
		const pages, queries, percentages = (n*3/100 + 1) + 4*(n/100+1) + 1, n/10 + 2, 7
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

// A shared cause fills all volumes of a fleet while SMN does not answer. At the default --cloud-rate and with the latencies of
// a real cloud and API server, the service decides on all of them in time and with few calls.
func TestAlarmStormIsDecidedInTime(t *testing.T) {
	level.InLongBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{RuleQuota: 3 * stormDatabases})
		ids := f.armMany(stormDatabases)
		f.setFault(func(r *http.Request) *simcloud.Fault {
			if service, _ := simcloud.OperationOf(r); service == "smn" {
				return &simcloud.Fault{Hang: true}
			}
			return nil
		})
		time.Sleep(time.Until(time.Now().Truncate(5 * time.Minute).Add(10*time.Minute - time.Second)))
		f.start(flags{
			sweep: 5 * time.Minute, recheck: 30 * time.Second, maxAge: time.Hour,
			rate: app.Defaults().CloudRate, transport: slowCloud{f.sim}, kube: slowWrites{f.kube},
		})
		for _, id := range ids {
			f.uses(id, 93)
		}
		alarms := func() (all []simcloud.Delivery) {
			for _, d := range f.sim.Deliveries() {
				if d.Type == simcloud.TypeNotification {
					all = append(all, d)
				}
			}
			return all
		}
		for len(alarms()) == 0 {
			time.Sleep(time.Second)
		}
		began := alarms()[0].Created
		f.sim.ResetRequests()
		time.Sleep(time.Until(began.Add(stormDecided)))
		calls := len(f.sim.Requests())
		decided := 0
		for _, a := range f.autopilots() {
			if slices.ContainsFunc(a.Status.Decisions, func(d v1alpha1.DecisionRecord) bool { return d.Reason == "AlarmInForce" }) {
				decided++
			}
		}
		if n := len(alarms()); n != stormDatabases || decided != n || calls > stormCalls {
			t.Errorf("%d alarms, %d of them decided by %d calls, want all by %d", n, decided, calls, stormCalls)
		}
	})
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
