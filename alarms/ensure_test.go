package alarms_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
)

func TestArmsWithOneTopicOneSubscriptionThreeRules(t *testing.T) {
	w := newWorld(t)
	want := w.want()
	var steps []string
	_, err := w.alarms.Ensure(t.Context(), want, w.have, func(h alarms.Have) error {
		steps = append(steps, fmt.Sprintf("recorded %v %v %d; exist %d %d %d", h.TopicURN != "", h.Subscription, len(h.Rules),
			len(w.sim.Topics()), len(w.sim.Subscriptions()), len(w.sim.Rules())))
		return w.record(h)
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"recorded true  0; exist 1 0 0", // before anything is sent to the topic
		"recorded true Pending 0; exist 1 1 0",
		"recorded true Pending 1; exist 1 1 1",
		"recorded true Pending 2; exist 1 1 2",
		"recorded true Pending 3; exist 1 1 3",
	}, steps); diff != "" {
		t.Error(diff)
	}
	w.checkRecord()
	rule := w.sim.Rules()[0]
	topic := w.sim.Topics()[0]
	if topic.Name != "autopilot_shop_orders_1b4e28ba" || topic.DisplayName != want.DisplayName {
		t.Errorf("topic %+v", topic)
	}
	action := []otcsim.Action{{Type: "notification", NotificationList: []string{topic.URN}}}
	rule.ID, rule.State, rule.UpdateTime = "", "", 0
	if diff := cmp.Diff(otcsim.Rule{
		Name: "autopilot_shop_orders_1b4e28ba_storage", Description: "shop/orders, cluster c1",
		Metric: otcsim.Metric{
			Namespace: "SYS.RDS", MetricName: "rds039_disk_util",
			Dimensions: []otcsim.Dimension{{Name: "rds_cluster_id", Value: w.instance}},
		},
		Condition: otcsim.Condition{Period: 1, Filter: "average", ComparisonOperator: ">=", Value: 75, Unit: "%", Count: 5, SuppressDuration: 900},
		Enabled:   true, Level: 2, ActionEnabled: true, AlarmActions: action, OKActions: action,
	}, rule); diff != "" {
		t.Error(diff)
	}

	w.sim.ResetRequests()
	w.records = 0
	before := w.have
	w.ensure(want)
	if n := w.writes(); len(n) > 0 {
		t.Errorf("a second run wrote: %v", n)
	}
	if n := len(w.sim.Requests()); n != 2 {
		t.Errorf("a second run asked %d times, want 2", n)
	}
	// The states of rules just made are new to the record, and nothing else.
	if w.records > 1 || w.have.TopicURN != before.TopicURN || w.have.Rules[0].ID != before.Rules[0].ID || w.have.Rules[0].State == "" {
		t.Errorf("recorded %d times: %+v", w.records, w.have)
	}
	w.records = 0
	w.ensure(want)
	if w.records != 0 {
		t.Error("nothing has changed and it was recorded")
	}
}

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

func TestDriftIsMended(t *testing.T) {
	rule := func(w *world, metric string) string {
		for _, r := range w.have.Rules {
			if r.Metric == metric {
				return r.ID
			}
		}
		return ""
	}
	change := func(change func(*otc.Rule)) func(*world, context.Context) error {
		return func(w *world, ctx context.Context) error {
			r, err := w.cloud.Rule(ctx, rule(w, alarms.CPU))
			if err != nil {
				return err
			}
			change(&r)
			return w.cloud.ModifyRule(ctx, r.ID, r)
		}
	}
	create := func(change func(*otc.Rule)) func(*world, context.Context) error {
		return func(w *world, ctx context.Context) error {
			r, err := w.cloud.Rule(ctx, rule(w, alarms.CPU))
			if err != nil {
				return err
			}
			change(&r)
			_, err = w.cloud.CreateRule(ctx, r)
			return err
		}
	}
	tests := map[string]struct {
		do     func(*world, context.Context) error
		writes []string
	}{
		"threshold":   {change(func(r *otc.Rule) { r.Threshold = 99 }), []string{"UpdateAlarm"}},
		"period":      {change(func(r *otc.Rule) { r.Period = 3600 }), []string{"UpdateAlarm"}},
		"count":       {change(func(r *otc.Rule) { r.Count = 1 }), []string{"UpdateAlarm"}},
		"repeat":      {change(func(r *otc.Rule) { r.Repeat = 0 }), []string{"UpdateAlarm"}},
		"comparison":  {change(func(r *otc.Rule) { r.Comparison = "<" }), []string{"UpdateAlarm"}},
		"filter":      {change(func(r *otc.Rule) { r.Filter = "min" }), []string{"UpdateAlarm"}},
		"description": {change(func(r *otc.Rule) { r.Description = "mine" }), []string{"UpdateAlarm"}},
		"name":        {change(func(r *otc.Rule) { r.Name = "renamed" }), []string{"UpdateAlarm"}},
		"actions off": {change(func(r *otc.Rule) { r.ActionEnabled = false }), []string{"UpdateAlarm"}},
		"another topic": {
			change(func(r *otc.Rule) {
				other := []string{r.AlarmActions[0] + "-other"}
				r.AlarmActions, r.OKActions = other, other
			}), []string{"UpdateAlarm"},
		},
		"disabled": {func(w *world, ctx context.Context) error {
			return w.cloud.EnableRule(ctx, rule(w, alarms.Memory), false)
		}, []string{"SwitchAlarm"}},
		"deleted": {func(w *world, ctx context.Context) error { return w.cloud.DeleteRule(ctx, rule(w, alarms.Storage)) }, []string{"CreateAlarm"}},
		"twice":   {create(func(*otc.Rule) {}), []string{"DeleteAlarm"}},
		"watches another instance, the recorded one gone": {
			func(w *world, ctx context.Context) error {
				err := create(func(r *otc.Rule) { r.DimensionValue = "other" })(w, ctx)
				return errors.Join(err, w.cloud.DeleteRule(ctx, rule(w, alarms.CPU)))
			}, []string{"DeleteAlarm", "CreateAlarm"},
		},
		"the topic deleted": {
			func(w *world, ctx context.Context) error { return w.cloud.DeleteTopic(ctx, w.have.TopicURN) },
			[]string{"CreateTopic", "Subscribe"},
		},
		"the subscription deleted": {
			func(w *world, ctx context.Context) error { return w.cloud.Unsubscribe(ctx, w.have.SubscriptionURN) },
			[]string{"Subscribe"},
		},
		"the subscription canceled by its link": {
			func(w *world, _ context.Context) error { w.sim.Unsubscribe(w.have.SubscriptionURN); return nil },
			[]string{"Subscribe"},
		},
		"the record lost": {func(w *world, _ context.Context) error { w.have = alarms.Have{}; return nil }, []string{"CreateTopic"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ensure(w.want())
			whole := w.shown()
			if err := tt.do(w, t.Context()); err != nil {
				t.Fatal(err)
			}
			w.sim.ResetRequests()
			w.ensure(w.want())
			if diff := cmp.Diff(tt.writes, w.writes()); diff != "" {
				t.Errorf("writes:\n%s", diff)
			}
			if diff := cmp.Diff(whole, w.shown()); diff != "" {
				t.Error(diff)
			}
			w.checkRecord()
		})
	}
}

func TestAnotherInstanceGetsNewRules(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	old := w.have
	want := w.want()
	for i := range want.Rules {
		want.Rules[i].DimensionValue = strings.Repeat("e", 32) + "in01"
	}
	w.ensure(want)
	w.checkRecord()
	for i, r := range w.have.Rules {
		if r.ID == old.Rules[i].ID || r.State != "" || !strings.HasSuffix(r.Dimension, ":"+want.Rules[i].DimensionValue) {
			t.Errorf("rule %+v", r)
		}
	}
}

func TestMetricNoLongerWantedHasNoRule(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	want := w.want()
	want.Rules = want.Rules[:1]
	w.ensure(want)
	if rules := w.sim.Rules(); len(rules) != 1 || len(w.have.Rules) != 1 || w.have.Rules[0].ID != rules[0].ID {
		t.Errorf("%d rules, recorded %+v", len(rules), w.have.Rules)
	}
}

func TestStrangersByTheHundredHideNothing(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	strangers(t, w, 250)
	w.have = alarms.Have{} // only names are left to find them by
	before := len(w.sim.Rules())
	w.ensure(w.want())
	if n := len(w.sim.Rules()); n != before || len(w.sim.Topics()) != 251 {
		t.Errorf("%d rules, before %d; %d topics", n, before, len(w.sim.Topics()))
	}
	w.have = alarms.Have{}
	if err := w.alarms.Remove(t.Context(), w.want().Name, w.have); err != nil {
		t.Fatal(err)
	}
	if n := len(w.sim.Rules()); n != 250 || len(w.sim.Topics()) != 250 {
		t.Errorf("%d rules and %d topics are left, want those of the strangers", n, len(w.sim.Topics()))
	}
}

// strangers adds topics and rules of others.
func strangers(t *testing.T, w *world, n int) {
	t.Helper()
	for i := range n {
		urn, err := w.cloud.CreateTopic(t.Context(), fmt.Sprintf("stranger-%d", i), "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.cloud.CreateRule(t.Context(), foreignRule(fmt.Sprintf("stranger-%d", i), urn)); err != nil {
			t.Fatal(err)
		}
	}
}

func foreignRule(name, topic string) otc.Rule {
	return otc.Rule{
		Name: name, Namespace: "SYS.RDS", Metric: "rds001_cpu_util", Dimension: "rds_cluster_id", DimensionValue: "x", Period: 300, Count: 1,
		Filter: "average", Comparison: ">=", Threshold: 1, Enabled: true, ActionEnabled: true, AlarmActions: []string{topic}, OKActions: []string{topic},
	}
}

func TestSubscription(t *testing.T) {
	w := newWorld(t)
	want := w.want()
	w.ensure(want)
	asked := func() int { return w.sim.Count("smn", "Subscribe") }
	w.advance(askAgain)
	w.ensure(want)
	if asked() != 1 {
		t.Errorf("asked %d times within half an hour", asked())
	}
	w.advance(time.Second)
	w.ensure(want)
	if asked() != 2 || w.have.Subscription != alarms.Pending || !w.have.SubscribedTime.Equal(w.clock()) {
		t.Errorf("asked %d times, %+v", asked(), w.have)
	}
	w.sim.Confirm(w.have.SubscriptionURN)
	w.ensure(want)
	w.advance(24 * time.Hour)
	w.ensure(want)
	if asked() != 2 || w.have.Subscription != alarms.Confirmed {
		t.Errorf("asked %d times, %+v", asked(), w.have)
	}
	w.sim.Unsubscribe(w.have.SubscriptionURN)
	w.ensure(want)
	if asked() != 3 || w.have.Subscription != alarms.Pending {
		t.Errorf("canceled: asked %d times, %+v", asked(), w.have)
	}
}

const askAgain = 30 * time.Minute

// A run that could not record the subscription must not ask for its confirmation at once again.
func TestAdoptedSubscriptionIsGivenItsTime(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	w.have.SubscriptionURN, w.have.Subscription, w.have.SubscribedTime = "", "", time.Time{}
	w.ensure(w.want())
	if n := w.sim.Count("smn", "Subscribe"); n != 1 {
		t.Errorf("asked %d times", n)
	}
	w.advance(askAgain + time.Second)
	w.ensure(w.want())
	if n := w.sim.Count("smn", "Subscribe"); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

func TestNewURLReplacesTheOldAndLeavesAPersonsSubscription(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	if _, err := w.cloud.Subscribe(t.Context(), w.have.TopicURN, "email", "dba@example.com", "my own"); err != nil {
		t.Fatal(err)
	}
	want := w.want()
	want.Endpoint = "http://new.example.com/smn"
	w.ensure(want)
	var endpoints []string
	for _, s := range w.sim.Subscriptions() {
		endpoints = append(endpoints, s.Protocol+" "+s.Endpoint)
	}
	slices.Sort(endpoints)
	if diff := cmp.Diff([]string{"email dba@example.com", "http http://new.example.com/smn"}, endpoints); diff != "" {
		t.Error(diff)
	}
}

func TestConfirmationsAreNotAskedForFasterThanSMNSendsThem(t *testing.T) {
	w := newWorld(t)
	for i := range 152 {
		want := w.want()
		want.Name, want.Rules = alarms.Name("shop", fmt.Sprint(i), uid), nil
		have, err := w.alarms.Ensure(t.Context(), want, alarms.Have{}, func(alarms.Have) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if missing := have.Subscription == alarms.Missing; missing != (i >= 150) {
			t.Errorf("database %d: %s", i, have.Subscription)
		}
	}
	w.advance(10 * time.Minute)
	w.ensure(w.want())
	if w.have.Subscription != alarms.Pending {
		t.Errorf("ten minutes later: %s", w.have.Subscription)
	}
}

func TestFullQuotaIsToldAndTheOthersMended(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	if err := w.cloud.DeleteRule(t.Context(), w.have.Rules[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := w.cloud.EnableRule(t.Context(), w.have.Rules[2].ID, false); err != nil {
		t.Fatal(err)
	}
	w.sim.Configure(func(s *otcsim.Settings) { s.RuleQuota = 2 })
	_, err := w.alarms.Ensure(t.Context(), w.want(), w.have, w.record)
	if !errors.Is(err, otc.ErrQuota) {
		t.Errorf("err = %v", err)
	}
	if len(w.have.Rules) != 2 || w.have.Rules[0].Metric != alarms.CPU {
		t.Errorf("recorded %+v", w.have.Rules)
	}
	for _, r := range w.sim.Rules() {
		if !r.Enabled {
			t.Errorf("%s is still disabled", r.Name)
		}
	}
}

// hiding leaves a rule out of the listing, as happens when rows move between pages while they are read.
type hiding struct {
	*otc.Cloud
	id string
}

func (h hiding) Rules(ctx context.Context) ([]otc.Rule, error) {
	rules, err := h.Cloud.Rules(ctx)
	return slices.DeleteFunc(rules, func(r otc.Rule) bool { return r.ID == h.id }), err
}

func TestRecordedRuleThatThePagesDoNotShowIsNotMadeTwice(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	cloud := hiding{w.cloud, w.have.Rules[0].ID}
	if _, err := alarms.New(cloud, w.clock).Ensure(t.Context(), w.want(), w.have, w.record); err != nil {
		t.Fatal(err)
	}
	w.checkRecord()
}

// A record can be that of another object: a restored backup, an edited status.
func TestForeignRecordIsNotTrusted(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	theirs := w.shown()
	other := w.want()
	other.Name = alarms.Name("shop", "orders", "99999999-2fa1-11d2-883f-0016d3cca427")
	have, err := w.alarms.Ensure(t.Context(), other, w.have, func(alarms.Have) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if have.TopicURN == w.have.TopicURN || have.Rules[0].ID == w.have.Rules[0].ID || len(w.sim.Rules()) != 6 {
		t.Errorf("took over what is another's: %+v", have)
	}
	for _, record := range []alarms.Have{w.have, have} {
		if err := w.alarms.Remove(t.Context(), other.Name, record); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(theirs, w.shown()); diff != "" {
		t.Error(diff)
	}
}

func TestWantThatMakesNoSense(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*alarms.Want){
		"no URL":         func(want *alarms.Want) { want.Endpoint = "autopilot.example.com" },
		"another scheme": func(want *alarms.Want) { want.Endpoint = "ftp://autopilot.example.com" },
		"no such metric": func(want *alarms.Want) { want.Rules[0].Metric = "disk" },
	} {
		want := w.want()
		change(&want)
		if _, err := w.alarms.Ensure(t.Context(), want, w.have, w.record); err == nil || len(w.sim.Requests()) != 0 {
			t.Errorf("%s: %v, %d requests", name, err, len(w.sim.Requests()))
		}
	}
}

func TestStates(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	id := w.have.Rules[1].ID
	if err := w.sim.SetRuleState(id, otcsim.StateAlarm); err != nil {
		t.Fatal(err)
	}
	states, err := w.alarms.States(t.Context())
	if err != nil || len(states) != 3 {
		t.Fatal(states, err)
	}
	got := states[id]
	if time.Since(got.StateTime) < 0 || got.StateTime.IsZero() {
		t.Errorf("state time %s", got.StateTime)
	}
	got.StateTime = time.Time{}
	if diff := cmp.Diff(alarms.RuleState{
		Name: "autopilot_shop_orders_1b4e28ba_cpu", State: "alarm", Enabled: true, ThresholdPercent: 90, Dimension: "rds_cluster_id:" + w.instance,
	}, got); diff != "" {
		t.Error(diff)
	}
}
