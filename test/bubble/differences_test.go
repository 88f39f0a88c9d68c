// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// report is how the service reports a difference.
type report struct {
	armed    string   // the reason for which Armed is False before any alarm
	warnings []string // the reasons of Warning events
	noChange bool     // the service changes nothing
	noFlavor bool     // the service changes only the volume
}

// reports has the differences that the service reports. The others change nothing for users.
var reports = map[string]report{
	"cert-host":           {armed: autopilot.SubscriptionPending},
	"cert-pem":            {armed: autopilot.SubscriptionPending},
	"confirm-host":        {armed: autopilot.SubscriptionPending, warnings: []string{"ConfirmationRefused"}},
	"confirm-answer":      {armed: autopilot.SubscriptionPending, warnings: []string{"ConfirmationRefused"}},
	"signed-text":         {armed: autopilot.SubscriptionPending},
	"signature-algorithm": {armed: autopilot.SubscriptionPending},
	"timestamp-utc":       {armed: autopilot.SubscriptionPending},
	"subscription-status": {armed: autopilot.SubscriptionPending},
	"payload-schema":      {warnings: []string{"AlarmUnreadable"}},
	"payload-rule":        {warnings: []string{"AlarmUnreadable"}},
	"payload-time":        {warnings: []string{"AlarmUnreadable"}},
	"payload-dimension":   {warnings: []string{"AlarmUnreadable"}},
	"rule-raw":            {warnings: []string{"RuleSilent"}},
	"metric-percent":      {warnings: []string{"RuleSilent"}, noFlavor: true},
	"instance-primary":    {noFlavor: true}, // the data of the instance has no CPU of the primary
	"metric-delay":        {warnings: []string{"NoData"}, noChange: true},
	"datapoint-utc":       {warnings: []string{"NoData"}, noFlavor: true}, // each value is dated ahead, except that of the message
}

// If the real cloud differs from its manuals in one point, a full database still grows within one sweep, or the service
// warns.
func TestAlarmsLeadToGrowthWhenTheCloudDiffersFromItsManuals(t *testing.T) {
	for id, differ := range simcloud.Differences() {
		t.Run(id, func(t *testing.T) {
			run := level.InBubble
			if _, isReported := reports[id]; !isReported {
				run = level.InLongBubble // it changes nothing for users, so it does not delay make test
			}
			run(t, func(t *testing.T) {
				const sweep, longestSweep = 5 * time.Minute, 5*time.Minute + 30*time.Second // with the jitter
				var settings simcloud.Settings
				differ(&settings)
				f, want := newFleet(t, settings), reports[id]
				f.runOperator()
				var mu sync.Mutex
				warned := map[string]bool{}
				f.start(flags{sweep: sweep, maxAge: time.Hour, event: func(_ string, e autopilot.Event) {
					mu.Lock()
					defer mu.Unlock()
					if e.Warning && !strings.HasPrefix(e.Reason, "Storage") {
						warned[e.Reason] = true
					}
				}})
				in := f.database("default", "db", simcloud.Instance{
					Flavor: "rds.mysql.n1.large.4.ha", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 40, CPUDemand: 0.8},
				})
				time.Sleep(45 * time.Minute)
				armed := armedCondition(f.autopilot("default", "db"))
				if armed.Status == "True" && want.armed != "" || armed.Status != "True" && armed.Reason != want.armed {
					t.Errorf("Armed is %s, %s: %s; want the reason %q", armed.Status, armed.Reason, armed.Message, want.armed)
				}
				// changes reports whether the spec of the Rds changes within that time.
				changes := func(within time.Duration) bool {
					before, latest := f.requested("db"), time.Now().Add(within)
					for time.Now().Before(latest) && f.requested("db") == before {
						time.Sleep(10 * time.Second)
					}
					return f.requested("db") != before
				}
				// Cloud Eye needs five minutes and the delay of its data. A silent rule is given twice as long and two sweeps more.
				storage := 6*time.Minute + settings.MetricDelay + longestSweep
				if slices.Contains(want.warnings, "RuleSilent") {
					storage = 15*time.Minute + 3*longestSweep
				}
				// CPU needs three periods of five minutes, and one in which the load has begun. A flavor waits until the
				// instance has been ACTIVE for 15 minutes.
				flavor := 21*time.Minute + settings.MetricDelay + longestSweep
				made := 0
				for _, l := range []struct {
					load   simcloud.Workload
					within time.Duration
					want   bool
				}{
					{simcloud.Workload{UsedGB: 93, CPUDemand: 0.8}, storage, !want.noChange},
					{simcloud.Workload{UsedGB: 104, CPUDemand: 0.8}, storage, true}, // the alarm of a rule that was rewritten
					{simcloud.Workload{UsedGB: 60, CPUDemand: 1.94}, flavor, !want.noFlavor},
				} {
					f.must(f.sim.SetWorkload(in.ID, l.load))
					if got := changes(l.within); got != l.want {
						t.Fatalf("at %+v, the service requests a change within %v: %t", l.load, l.within, got)
					}
					if want.noChange {
						break
					}
					if l.want {
						made++
					}
					time.Sleep(15 * time.Minute) // until the cloud has made the change
				}
				mu.Lock()
				defer mu.Unlock()
				if got := slices.Sorted(maps.Keys(warned)); !slices.Equal(got, want.warnings) {
					t.Errorf("warned of %v, want %v", got, want.warnings)
				}
				n := 0
				for _, ch := range f.autopilot("default", "db").Status.Changes {
					if ch.By == v1alpha1.ByAutopilot {
						n++
					}
				}
				if n != made {
					t.Errorf("%d changes, want %d", n, made)
				}
			})
		})
	}
}

// Cloud Eye may evaluate a new rule at once on older points. The used space contradicts the alarm, so nothing changes.
func TestNewRuleInAlarmChangesNothingWhileTheUsedSpaceIsLow(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		// RawRulesSleep keeps the rule in that state.
		f := newFleet(t, simcloud.Settings{NewRule: simcloud.StateAlarm, Odd: simcloud.Odd{RawRulesSleep: true}})
		f.start(flags{sweep: 2 * time.Minute})
		f.database("default", "db", instance(twoVCPUs, 100, 40))
		before := f.requested("db")
		time.Sleep(30 * time.Minute)
		if after := f.requested("db"); after != before || len(f.sim.Rules()) != 3 {
			t.Errorf("the Rds was %+v and is %+v; %d rules", before, after, len(f.sim.Rules()))
		}
	})
}
