// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// drift is something that is no longer as it was armed.
type drift struct {
	name string
	// happen does it to a database, of which there is that much in the cloud.
	happen func(f *fleet, in otcsim.Instance, a *v1alpha1.RdsAutopilot, have things)
	// mended is what events say was mended; empty where nobody else broke anything.
	mended string
	// check looks at how it is afterwards, beyond that it is whole.
	check func(before, after things) error
}

// edit changes a rule as a person at the console would: metric and switch have calls of their own, and one cannot change.
func edit(m v1alpha1.Metric, change func(*otc.Rule)) func(*fleet, otcsim.Instance, *v1alpha1.RdsAutopilot, things) {
	return func(f *fleet, _ otcsim.Instance, _ *v1alpha1.RdsAutopilot, have things) {
		f.t.Helper()
		cloud, id := f.person(), have.rule(m).ID
		r, err := cloud.Rule(f.t.Context(), id)
		f.must(err)
		change(&r)
		f.must(cloud.ModifyRule(f.t.Context(), id, r))
	}
}

// policy changes the policy.
func policy(spec string) func(*fleet, otcsim.Instance, *v1alpha1.RdsAutopilot, things) {
	return func(f *fleet, _ otcsim.Instance, a *v1alpha1.RdsAutopilot, _ things) {
		f.t.Helper()
		f.patch(f.raps(a.Namespace), a.Name, `{"spec":`+spec+`}`)
	}
}

// same is that the rules are the same ones, only mended.
func same(before, after things) error {
	for _, r := range before.rules {
		if !slices.ContainsFunc(after.rules, func(x otcsim.Rule) bool { return x.ID == r.ID && x.Condition == r.Condition }) {
			return fmt.Errorf("there is no rule %s %+v", r.ID, r.Condition)
		}
	}
	return nil
}

// condition is that a rule has these numbers, and is the same one.
func condition(m v1alpha1.Metric, threshold float64, period, count, repeat int) func(before, after things) error {
	return func(before, after things) error {
		was, is := before.rule(m), after.rule(m)
		if c := is.Condition; is.ID != was.ID || c.Value != threshold || c.Period != period || c.Count != count || c.SuppressDuration != repeat {
			return fmt.Errorf("the rule is %+v", is)
		}
		return nil
	}
}

// remade is that the rule of a metric is another one than before, and as it was.
func remade(m v1alpha1.Metric) func(before, after things) error {
	return func(before, after things) error {
		was, is := before.rule(m), after.rule(m)
		if is.ID == was.ID || is.Condition != was.Condition {
			return fmt.Errorf("the rule is %+v, it was %+v", is, was)
		}
		return nil
	}
}

func drifts() []drift {
	const (
		storage = v1alpha1.MetricStorage
		cpu     = v1alpha1.MetricCPU
		memory  = v1alpha1.MetricMemory
	)
	return []drift{
		{"threshold", edit(storage, func(r *otc.Rule) { r.Threshold = 99 }), "the storage rule was brought in line: threshold", same},
		{"period", edit(cpu, func(r *otc.Rule) { r.Period = 3600 }), "the cpu rule was brought in line: period", same},
		{"count", edit(memory, func(r *otc.Rule) { r.Count = 5 }), "the memory rule was brought in line: count", same},
		{"repeat", edit(storage, func(r *otc.Rule) { r.Repeat = 86400 }), "the storage rule was brought in line: repeat", same},
		{"actions", edit(cpu, func(r *otc.Rule) { r.ActionEnabled, r.AlarmActions, r.OKActions = false, nil, nil }), "the cpu rule was brought in line: topic to notify", same},
		{"description", edit(memory, func(r *otc.Rule) { r.Description = "mine" }), "the memory rule was brought in line: description", same},
		{"filter", edit(cpu, func(r *otc.Rule) { r.Filter = "min" }), "the cpu rule was brought in line: filter", same},
		{"switch", func(f *fleet, _ otcsim.Instance, _ *v1alpha1.RdsAutopilot, have things) {
			f.must(f.person().EnableRule(f.t.Context(), have.rule(storage).ID, false))
		}, "the storage rule was brought in line: enabled", same},
		{"rule-deleted", func(f *fleet, _ otcsim.Instance, _ *v1alpha1.RdsAutopilot, have things) {
			f.sim.RemoveRule(have.rule(memory).ID)
		}, "the memory rule was gone: made again", remade(memory)},
		{"rule-copied", func(f *fleet, _ otcsim.Instance, _ *v1alpha1.RdsAutopilot, have things) {
			cloud := f.person()
			r, err := cloud.Rule(f.t.Context(), have.rule(cpu).ID)
			f.must(err)
			_, err = cloud.CreateRule(f.t.Context(), r)
			f.must(err)
		}, "superfluous cpu rules were removed: 1", same},
		{"topic-deleted", func(f *fleet, _ otcsim.Instance, _ *v1alpha1.RdsAutopilot, have things) {
			f.sim.RemoveTopic(have.topics[0].URN)
		}, "the topic was gone: made again", same},
		{"display-name", func(f *fleet, _ otcsim.Instance, _ *v1alpha1.RdsAutopilot, have things) {
			f.must(f.person().UpdateTopic(f.t.Context(), have.topics[0].URN, "mine"))
		}, "the topic's display name was changed: written again", same},
		{"unsubscribed", func(f *fleet, _ otcsim.Instance, _ *v1alpha1.RdsAutopilot, have things) {
			f.sim.Unsubscribe(have.subscriptions[0].URN)
		}, "the subscription was canceled: asked for again", same},
		{"subscription-deleted", func(f *fleet, _ otcsim.Instance, _ *v1alpha1.RdsAutopilot, have things) {
			f.sim.RemoveSubscription(have.subscriptions[0].URN)
		}, "the subscription was gone: asked for again", same},

		{"threshold-by-policy", policy(`{"storage":{"thresholdPercent":70}}`), "", condition(storage, 70, 1, 5, 900)},
		{"numbers-by-policy", policy(`{"flavor":{"alarm":{"periodSeconds":1200,"count":2,"repeatSeconds":3600}}}`), "", condition(memory, 90, 1200, 2, 3600)},
		{"threshold-by-growth", func(f *fleet, in otcsim.Instance, _ *v1alpha1.RdsAutopilot, _ things) {
			f.must(f.sim.ChangeInstance(in.ID, func(i *otcsim.Instance) { i.VolumeGB = 50 }))
		}, "", condition(storage, 80, 1, 5, 900)},
	}
}

func TestDriftIsMendedWithinOneSweepAndReported(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, otcsim.Settings{})
		f.runCloud()
		before, instances := map[string]things{}, map[string]otcsim.Instance{}
		for _, d := range drifts() {
			in := plain()
			if d.name == "threshold-by-growth" {
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
		first.swept() // and there is nothing more to mend
		first.stop()
		for _, d := range drifts() {
			step(t, d.name, func(t *testing.T) {
				f.whole(t, f.autopilot("default", d.name))
				if err := d.check(before[d.name], mended[d.name]); err != nil {
					t.Error(err)
				}
				f.expectMended(t, d.name, d.mended)
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
	f.until("the events are there", func() bool { return len(f.events("default", database, "Mended")) >= len(want) })
	events := f.events("default", database, "Mended")
	for _, e := range events {
		if e.Note != want[e.Regarding.Kind] || e.Series != nil || e.Type != "Normal" {
			t.Errorf("told on the %s: %q, series %+v; want %q once", e.Regarding.Kind, e.Note, e.Series, note)
		}
	}
	if len(events) != len(want) {
		t.Errorf("%d events, want %d", len(events), len(want))
	}
}

func TestWhatNeedsNoSweep(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, otcsim.Settings{})
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
		f.until("it is subscribed again", func() bool { return rules("unsubscribed").subscriptions[0].Status == otcsim.Confirmed })
		f.whole(t, f.armedNow("default", "unsubscribed"))
		f.expectMended(t, "unsubscribed", "the subscription was canceled: asked for again")

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
		mend := f.breaks(func(r *http.Request) *otcsim.Fault {
			if _, operation := otcsim.OperationOf(r); operation == "UpdateAlarm" {
				return &otcsim.Fault{Status: http.StatusForbidden}
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
