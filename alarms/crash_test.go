// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// crashes are all ways for a call to be the last one: carried out or not, in a run with a listing or without.
func crashes(do func(applied, listing bool)) {
	for _, applied := range []bool{false, true} {
		for _, listing := range []bool{false, true} {
			do(applied, listing)
		}
	}
}

// crash runs Ensure until the n-th write; it says whether there were so many.
func (w *world) crash(want v1alpha1.DesiredAlarms, n int, applied, listing bool) bool {
	w.t.Helper()
	var listed *alarms.Snapshot
	if listing {
		listed = w.listing()
	}
	cloud := &crashing{Cloud: w.cloud, n: n, applied: applied}
	_, _, err := w.ensureWith(w.t.Context(), w.process(cloud), want, w.recorded, listed, w.record)
	if err != nil && !errors.Is(err, errCrash) {
		w.t.Fatal(err)
	}
	return err != nil
}

// Whatever a run was doing when it stopped, the next one ends with one of each.
func TestEnsureCompletesAfterCrashAtAnyWrite(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	whole := w.shown()
	crashes(func(applied, listing bool) {
		for n := 1; ; n++ {
			w.reset()
			if !w.crash(w.want(), n, applied, listing) {
				if n != 6 {
					t.Errorf("a run has %d writes, want 5", n-1)
				}
				break
			}
			if repaired := w.sweep(w.want()); len(repaired) > 0 {
				t.Errorf("crash at write %d, applied %v: repaired %q", n, applied, repaired)
			}
			w.checkRecord()
			if diff := cmp.Diff(whole, w.shown()); diff != "" {
				t.Errorf("crash at write %d, applied %v:\n%s", n, applied, diff)
			}
			w.checkQuiet(w.want())
		}
	})
}

// watchAnother replaces a recorded rule by one that watches another instance.
func (w *world) watchAnother(i int) error {
	ctx, id := w.t.Context(), w.recorded.Rules[i].AlarmID
	rule, err := w.cloud.Rule(ctx, id)
	if err != nil {
		return err
	}
	rule.DimensionValue = strings.Repeat("e", 32) + "in01"
	w.recorded.Rules[i].AlarmID, err = w.cloud.CreateRule(ctx, rule)
	return errors.Join(err, w.cloud.DeleteRule(ctx, id))
}

// A repairing run replaces a rule of an instance that is no more, and removes the subscription of an older URL once the
// new one is confirmed.
func TestEnsureRepairsAfterCrashAtAnyWrite(t *testing.T) {
	w := newWorld(t)
	crashes(func(applied, listing bool) {
		for n := 1; ; n++ {
			w.reset()
			w.ensure(w.want())
			want := w.want()
			w.restartWith("https://new.example.com/smn")
			w.ensure(want)
			w.sim.Confirm(w.recorded.SubscriptionURN)
			want.Rules[0].ThresholdPercent = 80
			err0 := w.watchAnother(1)
			err1 := w.cloud.EnableRule(t.Context(), w.recorded.Rules[2].AlarmID, false)
			err2 := w.cloud.UpdateTopic(t.Context(), w.recorded.TopicURN, "mine")
			if err := errors.Join(err0, err1, err2); err != nil {
				t.Fatal(err)
			}
			if !w.crash(want, n, applied, listing) {
				if writes := n - 1; writes != 5 && !listing || writes != 6 && listing { // with a listing the display name as well
					t.Errorf("a repairing run has %d writes, listing %v", writes, listing)
				}
				break
			}
			w.sweep(want)
			w.checkRecord()
			if s := w.sim.Subscriptions()[0]; s.Endpoint != w.endpoint {
				t.Errorf("crash at write %d, applied %v: subscribed is %s", n, applied, s.Endpoint)
			}
			for i, r := range w.sim.Rules() {
				if !r.Enabled {
					t.Errorf("crash at write %d, applied %v: rule %d is disabled", n, applied, i)
				}
			}
			if got := w.sim.Topics()[0].DisplayName; got == "mine" {
				t.Errorf("crash at write %d, applied %v: the topic is called %q", n, applied, got)
			}
			w.checkQuiet(want)
		}
	})
}

func TestEnsureCompletesAfterCrashAtAnyRecord(t *testing.T) {
	w := newWorld(t)
	for n := 1; n <= 5; n++ {
		w.reset()
		calls := 0
		_, _, err := w.ensureWith(t.Context(), w.alarms, w.want(), w.recorded, nil, func(h v1alpha1.Alarms) error {
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

// Rules that are replaced for another instance are nobody's damage, wherever the run that replaced them stopped.
func TestEnsureReportsNothingAfterCrashBetweenOldAndNewRules(t *testing.T) {
	w := newWorld(t)
	other := w.want()
	other.Dimension = "rds_cluster_id:" + strings.Repeat("e", 32) + "in01"
	heal := func(what string, n int) {
		t.Helper()
		if repaired := w.sweep(other); len(repaired) > 0 {
			t.Errorf("crash at %s %d: repaired %q", what, n, repaired)
		}
		w.checkRecord()
	}
	crashes(func(applied, listing bool) {
		for n := 1; ; n++ {
			w.reset()
			w.ensure(w.want())
			if !w.crash(other, n, applied, listing) {
				if n != 7 {
					t.Errorf("a run has %d writes, want 6", n-1)
				}
				break
			}
			heal("write", n)
		}
	})
	for n := 1; ; n++ {
		w.reset()
		w.ensure(w.want())
		calls := 0
		_, _, err := w.ensureWith(t.Context(), w.alarms, other, w.recorded, nil, func(h v1alpha1.Alarms) error {
			if calls++; calls == n {
				return errCrash
			}
			return w.record(h)
		})
		if err == nil {
			if n != 7 {
				t.Errorf("a run has %d records, want 6", n-1)
			}
			break
		}
		heal("record", n)
	}
}
