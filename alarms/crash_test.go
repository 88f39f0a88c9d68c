package alarms_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
)

// Whatever a run was doing when it stopped, the next one ends with one of each.
func TestCrashAtAnyStepIsHealed(t *testing.T) {
	armed := newWorld(t)
	armed.ensure(armed.want())
	whole := armed.shown()
	for _, applied := range []bool{false, true} {
		for n := 1; ; n++ {
			w := newWorld(t)
			cloud := &crashing{Cloud: w.cloud, n: n, applied: applied}
			_, err := alarms.New(cloud, w.clock).Ensure(t.Context(), w.want(), w.have, w.record)
			if err == nil {
				if n != 6 {
					t.Errorf("a run has %d writes, want 5", n-1)
				}
				break
			}
			if !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			w.ensure(w.want())
			w.checkRecord()
			if diff := cmp.Diff(whole, forInstance(w.shown(), w.instance, armed.instance, w, armed)); diff != "" {
				t.Errorf("crash at write %d, applied %v:\n%s", n, applied, diff)
			}
		}
	}
}

// A mending run replaces the rules of an instance that is no more, and the subscription of an older URL.
func TestCrashWhileMendingIsHealed(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for n := 1; ; n++ {
			w := newWorld(t)
			w.ensure(w.want())
			want := w.want()
			want.Endpoint = "https://new.example.com/smn"
			want.Rules[0].ThresholdPercent = 80
			want.Rules[1].DimensionValue = strings.Repeat("e", 32) + "in01"
			if err := w.cloud.EnableRule(t.Context(), w.have.Rules[2].ID, false); err != nil {
				t.Fatal(err)
			}
			cloud := &crashing{Cloud: w.cloud, n: n, applied: applied}
			_, err := alarms.New(cloud, w.clock).Ensure(t.Context(), want, w.have, w.record)
			if err == nil {
				if n != 7 {
					t.Errorf("a mending run has %d writes, want 6", n-1)
				}
				break
			}
			w.ensure(want)
			w.checkRecord()
			if s := w.sim.Subscriptions()[0]; s.Endpoint != want.Endpoint {
				t.Errorf("crash at write %d, applied %v: subscribed is %s", n, applied, s.Endpoint)
			}
			for i, r := range w.sim.Rules() {
				if !r.Enabled {
					t.Errorf("crash at write %d, applied %v: rule %d is disabled", n, applied, i)
				}
			}
			w.sim.ResetRequests()
			w.ensure(want)
			if left := w.writes(); len(left) > 0 {
				t.Errorf("crash at write %d, applied %v: the second run still wrote %v", n, applied, left)
			}
		}
	}
}

func TestCrashAtAnyRecordIsHealed(t *testing.T) {
	for n := 1; n <= 5; n++ {
		w := newWorld(t)
		calls := 0
		_, err := w.alarms.Ensure(t.Context(), w.want(), w.have, func(h alarms.Have) error {
			if calls++; calls == n {
				return errCrash
			}
			return w.record(h)
		})
		if !errors.Is(err, errCrash) || calls != n {
			t.Fatalf("record %d: %v after %d calls", n, err, calls)
		}
		w.ensure(w.want())
		w.checkRecord()
	}
}

// forInstance makes two worlds comparable, which differ by project and instance.
func forInstance(lines []string, instance, other string, w, o *world) []string {
	out := slices.Clone(lines)
	for i := range out {
		out[i] = strings.ReplaceAll(strings.ReplaceAll(out[i], instance, other), w.sim.ProjectID(), o.sim.ProjectID())
	}
	return out
}
