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
	"github.com/mcsps/rds-autopilot/internal/doctor"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// differsSweep is the sweep interval of these services. Within one sweep a full database grows, or the service warns.
const differsSweep = 5 * time.Minute

// loud is how the service reports a difference.
type loud struct {
	armed   string   // the reason for which Armed is False before any alarm
	warning []string // the reasons of Warning events
	stays   bool     // nothing is done: only told
	storage bool     // only storage is acted on
}

// louds has the differences that the service reports. The others change nothing for users.
var louds = map[string]loud{
	"cert-host":           {armed: autopilot.SubscriptionPending},
	"cert-pem":            {armed: autopilot.SubscriptionPending},
	"confirm-host":        {armed: autopilot.SubscriptionPending, warning: []string{"ConfirmationRefused"}},
	"confirm-answer":      {armed: autopilot.SubscriptionPending, warning: []string{"ConfirmationRefused"}},
	"signed-text":         {armed: autopilot.SubscriptionPending},
	"signature-algorithm": {armed: autopilot.SubscriptionPending},
	"timestamp-utc":       {armed: autopilot.SubscriptionPending},
	"subscription-status": {armed: autopilot.SubscriptionPending},
	"payload-schema":      {warning: []string{"AlarmUnreadable"}},
	"payload-rule":        {warning: []string{"AlarmUnreadable"}},
	"payload-time":        {warning: []string{"AlarmUnreadable"}},
	"payload-dimension":   {warning: []string{"AlarmUnreadable"}},
	"rule-raw":            {warning: []string{"RuleSilent"}},
	"metric-percent":      {warning: []string{"RuleSilent"}, storage: true},
	"instance-primary":    {storage: true}, // the CPU of the primary is nowhere in the data of the instance
	"metric-delay":        {warning: []string{"NoData"}, stays: true},
	"datapoint-utc":       {warning: []string{"NoData"}, stays: true}, // each value is dated ahead
}

// sweepAtMost is the longest time between two sweeps, the jitter included.
const sweepAtMost = 5*time.Minute + 30*time.Second

// If the real cloud differs from its manuals in one point, a full database still grows, or the service warns.
func TestAlarmsLeadToGrowthWhenTheCloudDiffersFromItsManuals(t *testing.T) {
	for _, a := range doctor.Assumptions() {
		t.Run(a.ID, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				var settings simcloud.Settings
				simcloud.Differences()[a.ID](&settings)
				f := newFleet(t, settings)
				f.runCloud()
				f.operator()
				var mu sync.Mutex
				warned := map[string]time.Time{}
				s := f.start(flags{sweep: differsSweep, maxAge: time.Hour, event: func(_ string, e autopilot.Event) {
					mu.Lock()
					defer mu.Unlock()
					if _, known := warned[e.Reason]; e.Warning && !known {
						warned[e.Reason] = time.Now()
					}
				}})
				defer s.stop()
				in := f.database("default", "db", simcloud.Instance{Flavor: "rds.mysql.n1.large.4.ha", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 40, CPUDemand: 0.8}})
				time.Sleep(45 * time.Minute)
				want := louds[a.ID]
				armed := armedCondition(f.autopilot("default", "db"))
				if armed.Status == "True" && want.armed != "" || armed.Status != "True" && armed.Reason != want.armed {
					t.Errorf("Armed is %s, %s: %s; want the reason %q", armed.Status, armed.Reason, armed.Message, want.armed)
				}
				for _, full := range []struct {
					usedGB float64
					from   int64
				}{{93, 100}, {104, 110}} { // the second alarm is of a rule that was rewritten
					f.must(f.sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: full.usedGB, CPUDemand: 0.8}))
					alarmed := time.Now()
					// Cloud Eye needs five minutes and the delay of its data; a silent rule is given twice as long, and two sweeps more.
					latest := alarmed.Add(6*time.Minute + settings.MetricDelay + sweepAtMost)
					if slices.Contains(want.warning, "RuleSilent") {
						latest = alarmed.Add(15*time.Minute + 3*sweepAtMost)
					}
					for time.Now().Before(latest) && f.volume("default", "db") == full.from {
						time.Sleep(10 * time.Second)
					}
					if grown := f.volume("default", "db") > full.from; grown == want.stays {
						t.Fatalf("%s after it was full, the volume is asked to have %d GB", time.Since(alarmed), f.volume("default", "db"))
					}
					if want.stays {
						break
					}
					time.Sleep(10 * time.Minute) // until it has arrived
				}
				if !want.stays {
					// The CPU's alarm: three periods of five minutes, and one in which the load has begun. A flavor waits until the
					// instance has been ACTIVE for 15 minutes.
					f.must(f.sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: 60, CPUDemand: 1.94}))
					flavor := func() any { return f.rdsSpec("db")["flavorref"] }
					before := flavor()
					for latest := time.Now().Add(21*time.Minute + settings.MetricDelay + sweepAtMost); time.Now().Before(latest) && flavor() == before; {
						time.Sleep(10 * time.Second)
					}
					if (flavor() == before) != want.storage {
						t.Errorf("after the CPU was busy, the flavor is asked to be %v, which was %v", flavor(), before)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if got := slices.DeleteFunc(slices.Sorted(maps.Keys(warned)), func(reason string) bool { return strings.HasPrefix(reason, "Storage") }); !slices.Equal(got, want.warning) {
					t.Errorf("warned of %v, want %v", got, want.warning)
				}
				wanted := 3
				if want.storage {
					wanted = 2
				}
				if n := f.changes("default", "db", v1alpha1.ByAutopilot); n > wanted || n < wanted-1 && !want.stays { // the last may not have arrived
					t.Errorf("%d changes, want %d", n, wanted)
				}
			})
		})
	}
}

// The IDs of the assumptions are also those of the differences that the simulated cloud can have.
func TestSimulatedCloudCanBreakEveryAssumption(t *testing.T) {
	var assumed []string
	for _, a := range doctor.Assumptions() {
		assumed = append(assumed, a.ID)
	}
	slices.Sort(assumed)
	if can := slices.Sorted(maps.Keys(simcloud.Differences())); !slices.Equal(assumed, can) {
		t.Errorf("assumed is %v\nthe simulated cloud can differ in %v", assumed, can)
	}
	if len(assumed) < 25 {
		t.Errorf("%d assumptions", len(assumed))
	}
}
