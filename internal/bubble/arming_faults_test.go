// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// ill is a fault of one service.
func ill(service string, fault otcsim.Fault) func(*http.Request) *otcsim.Fault {
	return func(r *http.Request) *otcsim.Fault {
		if s, _ := otcsim.OperationOf(r); s == service {
			return &fault
		}
		return nil
	}
}

// rate fails if a service was asked faster than so many times a second in any stretch of time. Up to
// a second's worth may come at once.
func (f *fleet) rate(t *testing.T, perSecond float64) {
	t.Helper()
	byService := map[string][]time.Time{}
	for _, r := range f.sim.Requests() {
		if slices.Contains([]string{"smn", "ces", "rds"}, r.Service) {
			byService[r.Service] = append(byService[r.Service], r.Time)
		}
	}
	for service, times := range byService {
		t.Logf("%d requests to %s", len(times), service)
		for i := range times {
			for j := i; j < len(times); j++ {
				took := times[j].Sub(times[i]).Seconds()
				if most := math.Ceil(perSecond) + perSecond*took + 1; float64(j-i+1) > most {
					t.Fatalf("%d requests to %s within %.2f s, want at most %g a second", j-i+1, service, took, perSecond)
				}
			}
		}
	}
}

func TestAnIllCloudIsReportedAndArmingCompletesAfterwards(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		const rate = 8
		f := newFleet(t, otcsim.Settings{})
		f.runCloud()
		well := f.database("default", "well", plain())
		s := f.start(flags{sweep: 2 * time.Minute, rate: rate})
		f.whole(t, f.armedNow("default", "well"))
		const crowd = 12
		for i := range crowd { // or there would be nothing to hold back
			f.database("default", fmt.Sprint("crowd-", i), plain())
		}
		f.until("all are armed", func() bool { return f.armed(crowd + 1) })
		grown := 100
		for _, tc := range []struct {
			name     string
			fault    func(*http.Request) *otcsim.Fault
			says     string
			readable bool // whether a decision can be taken meanwhile
		}{
			{"throttled", ill("ces", otcsim.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"1"}}}), "429", true},
			{"broken", ill("smn", otcsim.Fault{Status: http.StatusInternalServerError}), "500", true},
			{"silent", ill("rds", otcsim.Fault{Hang: true}), "", false},
		} {
			step(t, tc.name, func(t *testing.T) {
				mend := f.breaks(tc.fault)
				defer mend()
				begin := time.Now()
				f.database("default", tc.name, plain())
				a := f.says("default", tc.name, false, "CloudUnreachable")
				if m := armedCondition(a).Message; !strings.Contains(m, tc.says) {
					t.Errorf("it says %q", m)
				}
				unarmed := armedCondition(f.says("default", "well", false, "CloudUnreachable"))
				if tc.readable {
					grown += 10
					f.must(f.sim.SetWorkload(well.ID, otcsim.Workload{UsedGB: 0.93 * float64(grown-10)}))
					f.until("the armed one is grown meanwhile", func() bool { return f.wanted("well") == int64(grown) })
					// The operator, if there were one:
					f.must(f.sim.ChangeInstance(well.ID, func(i *otcsim.Instance) { i.VolumeGB = grown }))
				}
				f.until("five minutes have passed", func() bool { return time.Since(begin) > 5*time.Minute })
				if isArmed(f.autopilot("default", tc.name)) {
					t.Error("armed in spite of it")
				}
				// Or each try would write, and each write would send a decision back to its beginning.
				if is := armedCondition(f.autopilot("default", "well")); !is.LastTransitionTime.Equal(&unarmed.LastTransitionTime) {
					t.Errorf("Armed went from False at %s to False at %s", unarmed.LastTransitionTime, is.LastTransitionTime)
				}
				mend()
				f.whole(t, f.armedNow("default", tc.name))
				f.whole(t, f.armedNow("default", "well"))
			})
		}

		step(t, "mending fails", func(t *testing.T) {
			var refuse atomic.Bool
			refuse.Store(true)
			defer f.breaks(func(r *http.Request) *otcsim.Fault {
				if _, operation := otcsim.OperationOf(r); operation == "SwitchAlarm" && refuse.Load() {
					return &otcsim.Fault{Status: http.StatusForbidden}
				}
				return nil
			})()
			rule := f.thingsOf(name(f.autopilot("default", "well"))).rule(v1alpha1.MetricStorage)
			refuse.Store(false)
			f.must(f.person().EnableRule(t.Context(), rule.ID, false))
			refuse.Store(true)
			f.says("default", "well", false, "CloudUnreachable")
			tries := f.sim.Count("ces", "SwitchAlarm")
			f.until("it is tried again", func() bool {
				if isArmed(f.autopilot("default", "well")) {
					t.Fatal("armed with a rule that is disabled")
				}
				return f.sim.Count("ces", "SwitchAlarm") > tries+2
			})
			refuse.Store(false)
			f.whole(t, f.armedNow("default", "well"))
		})
		s.rest()
		s.stop()
		f.rate(t, rate)
	})
}

// wanted is spec.volumesize.
func (f *fleet) wanted(db string) int64 {
	f.t.Helper()
	return f.rdsSpec(db)["volumesize"].(int64)
}
