// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// drift is a difference between the cloud and the policy that appears after a database was armed.
type drift struct {
	name   string
	happen func(f *fleet, in simcloud.Instance, a *v1alpha1.RdsAutopilot, have things)
	event  string // the note of the event; empty where nobody else changed anything
	check  func(before, after things) error
}

// same checks that the rules have the IDs and conditions from before.
func same(before, after things) error {
	for _, r := range before.rules {
		if !slices.ContainsFunc(after.rules, func(x simcloud.Rule) bool { return x.ID == r.ID && x.Condition == r.Condition }) {
			return fmt.Errorf("there is no rule %s %+v", r.ID, r.Condition)
		}
	}
	return nil
}

// threshold checks that the storage rule has this threshold and is the same rule as before.
func threshold(percent float64) func(before, after things) error {
	return func(before, after things) error {
		was, is := before.rule(v1alpha1.MetricStorage), after.rule(v1alpha1.MetricStorage)
		if is.ID != was.ID || is.Condition.Value != percent {
			return fmt.Errorf("the rule is %+v", is)
		}
		return nil
	}
}

// remade checks that the rule of a metric is a new one with the former condition.
func remade(m v1alpha1.Metric) func(before, after things) error {
	return func(before, after things) error {
		was, is := before.rule(m), after.rule(m)
		if is.ID == was.ID || is.Condition != was.Condition {
			return fmt.Errorf("the rule is %+v, it was %+v", is, was)
		}
		return nil
	}
}

// drifts returns one drift of each source. Package alarms tests every kind.
func drifts() []drift {
	return []drift{
		{"rule-edited", func(f *fleet, _ simcloud.Instance, _ *v1alpha1.RdsAutopilot, have things) {
			f.must(f.person().EnableRule(f.t.Context(), have.rule(v1alpha1.MetricStorage).ID, false))
		}, "the storage rule was restored: enabled", same},
		{"rule-deleted", func(f *fleet, _ simcloud.Instance, _ *v1alpha1.RdsAutopilot, have things) {
			f.sim.RemoveRule(have.rule(v1alpha1.MetricMemory).ID)
		}, "the memory rule was gone: created again", remade(v1alpha1.MetricMemory)},
		{"topic-deleted", func(f *fleet, _ simcloud.Instance, _ *v1alpha1.RdsAutopilot, have things) {
			f.sim.RemoveTopic(have.topics[0].URN)
		}, "the topic was gone: created again", same},
		{"policy", func(f *fleet, _ simcloud.Instance, a *v1alpha1.RdsAutopilot, _ things) {
			f.patch(f.raps(a.Namespace), a.Name, `{"spec":{"storage":{"thresholdPercent":70}}}`)
		}, "", threshold(70)},
		{"growth", func(f *fleet, in simcloud.Instance, _ *v1alpha1.RdsAutopilot, _ things) {
			f.must(f.sim.ChangeInstance(in.ID, func(i *simcloud.Instance) { i.VolumeGB = 50 }))
		}, "", threshold(77)},
	}
}

func TestSweepRepairsAndReportsDrift(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.runCloud()
		before, instances := map[string]things{}, map[string]simcloud.Instance{}
		for _, d := range drifts() {
			in := plain()
			if d.name == "growth" {
				in.VolumeGB = 40
			}
			instances[d.name] = f.database("default", d.name, in)
		}
		first := f.start(flags{sweep: 4 * time.Minute})
		for _, d := range drifts() {
			before[d.name] = f.whole(t, f.armedNow("default", d.name))
		}
		first.swept() // so that the next one is some seconds away
		for _, d := range drifts() {
			d.happen(f, instances[d.name], f.autopilot("default", d.name), before[d.name])
		}
		first.swept()
		mended := map[string]things{}
		for _, d := range drifts() {
			mended[d.name] = f.thingsOf(name(f.autopilot("default", d.name)))
		}
		for _, d := range drifts() { // what is asked for again is confirmed a moment later
			f.armedNow("default", d.name)
		}
		first.swept() // this sweep must repair nothing
		first.stop()
		for _, d := range drifts() {
			step(t, d.name, func(t *testing.T) {
				f.whole(t, f.autopilot("default", d.name))
				if err := d.check(before[d.name], mended[d.name]); err != nil {
					t.Error(err)
				}
				f.expectMended(t, d.name, d.event)
			})
		}
	})
}

// expectMended fails unless that was reported once, on both objects, and of nothing else that was mended.
func (f *fleet) expectMended(t *testing.T, database, note string) {
	t.Helper()
	want := map[string]string{v1alpha1.Kind: note, "Rds": note}
	if note == "" {
		want = nil
	}
	f.until("the events are there", func() bool { return len(f.events("default", database, "Repaired")) >= len(want) })
	events := f.events("default", database, "Repaired")
	for _, e := range events {
		if e.Note != want[e.Regarding.Kind] || e.Series != nil || e.Type != "Normal" {
			t.Errorf("told on the %s: %q, series %+v; want %q once", e.Regarding.Kind, e.Note, e.Series, note)
		}
	}
	if len(events) != len(want) {
		t.Errorf("%d events, want %d", len(events), len(want))
	}
}

func TestRepairsThatDoNotWaitForASweep(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.runCloud()
		for _, db := range []string{"unsubscribed", "disabled", "renewed", "failed"} {
			f.database("default", db, plain())
		}
		s := f.start(flags{})
		urls := func() (found []string) {
			for _, x := range f.sim.Subscriptions() {
				found = append(found, fmt.Sprint(x.Status, " ", x.Endpoint))
			}
			return slices.Compact(found)
		}
		rules := func(db string) things { return f.thingsOf(name(f.autopilot("default", db))) }
		for _, db := range []string{"unsubscribed", "disabled", "renewed", "failed"} {
			f.whole(t, f.armedNow("default", db))
		}
		s.rest()

		f.sim.Unsubscribe(rules("unsubscribed").subscriptions[0].URN)
		f.until("it is subscribed again", func() bool { return rules("unsubscribed").subscriptions[0].Status == simcloud.Confirmed })
		f.whole(t, f.armedNow("default", "unsubscribed"))
		f.expectMended(t, "unsubscribed", "the subscription was canceled: requested again")

		f.patch(f.raps("default"), "disabled", `{"spec":{"flavor":{"cpu":{"enabled":false}}}}`)
		f.until("its rule is gone", func() bool {
			return len(rules("disabled").rules) == 2 && rules("disabled").rule(v1alpha1.MetricCPU).ID == "" &&
				len(f.autopilot("default", "disabled").Status.Alarms.Rules) == 2
		})
		if a := f.autopilot("default", "disabled"); !isArmed(a) {
			t.Errorf("with a metric disabled: %+v", armedCondition(a))
		}
		f.patch(f.raps("default"), "disabled", `{"spec":{"flavor":{"cpu":{"enabled":true}}}}`)
		f.until("its rule is there again", func() bool { return len(f.autopilot("default", "disabled").Status.Alarms.Rules) == 3 })
		f.whole(t, f.armedNow("default", "disabled"))

		// The policy changes and the cloud fails: what was not done is done once it can be, and Armed is not true before.
		mend := f.breaks(func(r *http.Request) *simcloud.Fault {
			if _, operation := simcloud.OperationOf(r); operation == "UpdateAlarm" {
				return &simcloud.Fault{Status: http.StatusForbidden}
			}
			return nil
		})
		f.patch(f.raps("default"), "failed", `{"spec":{"storage":{"alarm":{"count":2}}}}`)
		f.says("default", "failed", false, "CloudUnreachable")
		tries := f.sim.Count("ces", "UpdateAlarm")
		f.until("it was tried again", func() bool { return f.sim.Count("ces", "UpdateAlarm") > tries })
		if a := f.autopilot("default", "failed"); isArmed(a) {
			t.Errorf("armed with another count than the policy's: %+v", armedCondition(a))
		}
		mend()
		f.armedNow("default", "failed")
		if c := f.whole(t, f.autopilot("default", "failed")).rule(v1alpha1.MetricStorage).Condition; c.Count != 2 {
			t.Errorf("the rule is %+v", c)
		}
		if n := s.metric("rds_autopilot_sweep_duration_seconds"); n != 1 {
			t.Errorf("%g sweeps, want the first only", n)
		}
		s.stop()
		want := []string{"1 " + f.public + "/smn"}
		if got := urls(); !slices.Equal(got, want) {
			t.Errorf("subscribed are %v, want %v", got, want)
		}

		second := f.start(flags{path: "/hook"})
		want = []string{"1 " + f.public + "/hook"}
		f.until("the new URL is subscribed and the old one is not", func() bool { return slices.Equal(urls(), want) && f.armed(4) })
		for _, db := range []string{"unsubscribed", "disabled", "renewed", "failed"} {
			f.whole(t, f.armedNow("default", db))
		}
		second.rest()
		second.stop()
		for _, db := range []string{"disabled", "renewed", "failed"} {
			f.expectMended(t, db, "")
		}
	})
}
