// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// ill is a fault of one service.
func ill(service string, fault simcloud.Fault) func(*http.Request) *simcloud.Fault {
	return func(r *http.Request) *simcloud.Fault {
		if s, _ := simcloud.OperationOf(r); s == service {
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

func TestArmingCompletesAfterACloudOutage(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		const rate = 8
		f := newFleet(t, simcloud.Settings{})
		f.runCloud()
		well := f.database("default", "well", plain())
		s := f.start(flags{sweep: 2 * time.Minute, rate: rate})
		f.whole(t, f.armedNow("default", "well"))
		const crowd = 12
		for i := range crowd { // without other databases the rate limit would never apply
			f.database("default", fmt.Sprint("crowd-", i), plain())
		}
		f.until("all are armed", func() bool { return f.armed(crowd + 1) })
		grown := 100
		for _, tc := range []struct {
			name     string
			fault    func(*http.Request) *simcloud.Fault
			says     string
			readable bool // whether a decision can be taken meanwhile
		}{
			{"throttled", ill("ces", simcloud.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"1"}}}), "429", true},
			{"broken", ill("smn", simcloud.Fault{Status: http.StatusInternalServerError}), "500", true},
			{"silent", ill("rds", simcloud.Fault{Hang: true}), "", false},
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
					from := grown
					f.must(f.sim.SetWorkload(well.ID, simcloud.Workload{UsedGB: 0.93 * float64(from)}))
					f.until("the armed one is grown meanwhile", func() bool { return f.wanted("well") > int64(from) })
					grown = int(f.wanted("well"))
					// The operator, if there were one:
					f.must(f.sim.ChangeInstance(well.ID, func(i *simcloud.Instance) { i.VolumeGB = grown }))
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
