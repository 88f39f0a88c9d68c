// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// tried runs Ensure and takes what it says is there, as a caller does that cannot let an error hide it.
func (w *world) tried(want v1alpha1.DesiredAlarms, listing bool) error {
	w.t.Helper()
	var listed *alarms.Snapshot
	if listing {
		listed = w.listing()
	}
	have, repaired, err := w.ensureWith(w.t.Context(), w.alarms, want, w.recorded, listed, w.record)
	if len(repaired) > 0 {
		w.t.Errorf("nobody has broken anything: %q", repaired)
	}
	w.recorded = have
	return err
}

// Whatever SMN does not do, there are rules, and their states can be read.
func TestRulesDoNotWaitForSMN(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	whole := w.shown()
	for name, ill := range map[string][]string{
		"no topic":        {"CreateTopic"},
		"no subscription": {"Subscribe"},
		"no list":         {"ListTopicSubscriptions"},
		"no listing":      {"ListTopics"},
		"half a listing":  {"ListSubscriptions"},
		"nothing": {"ListTopics", "ListSubscriptions", "ListTopicSubscriptions", "ShowTopic", "CreateTopic", "UpdateTopic", "Subscribe",
			"DeleteSubscription"},
	} {
		for _, listing := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", listing"}[listing], func(t *testing.T) {
				w.t = t
				w.reset()
				fails := listing || !slices.Equal(ill, []string{"ListTopics"}) && !slices.Equal(ill, []string{"ListSubscriptions"})
				for range 3 { // made, seen, and left alone
					w.refuse(ill...)
					err := w.tried(w.want(), listing)
					if fails && (err == nil || !strings.Contains(err.Error(), "403 SMN.9999 Not today") || strings.Contains(err.Error(), "\n")) {
						t.Errorf("it says %v", err)
					}
					if fails == (err == nil) || len(w.sim.Rules()) != 3 || len(w.recorded.Rules) != 3 {
						t.Fatalf("%d rules, recorded %+v, %v", len(w.sim.Rules()), w.recorded, err)
					}
				}
				if n := w.sim.Count("ces", "CreateAlarm"); n != 3 {
					t.Errorf("%d rules were made", n)
				}
				if n := w.sim.Count("ces", "UpdateAlarm"); n != 0 {
					t.Errorf("%d rules were changed", n)
				}
				w.refuse()
				if err := w.tried(w.want(), listing); err != nil {
					t.Fatal(err)
				}
				w.checkRecord()
				if diff := cmp.Diff(whole, w.shown()); diff != "" {
					t.Error(diff)
				}
				w.checkQuiet(w.want())
			})
		}
	}
}

// The rules of a database whose record is lost go on notifying its topic while SMN does not answer.
func TestRulesKeepTheirTopicWhileItIsUnknown(t *testing.T) {
	for _, listing := range []bool{false, true} {
		w := newWorld(t)
		w.ensure(w.want())
		whole := w.shown()
		w.recorded = v1alpha1.Alarms{}
		w.refuse("ListTopics", "CreateTopic")
		for range 2 {
			if err := w.tried(w.want(), listing); err == nil || len(w.recorded.Rules) != 3 {
				t.Errorf("%v, %+v", err, w.recorded)
			}
		}
		if diff := cmp.Diff(whole, w.shown()); diff != "" {
			t.Error(diff)
		}
	}
}

// A rule without a topic is ours by its name or, once renamed, by its mark; and it can be removed.
func TestRulesWithoutTopicAreRemovedByNameAndMark(t *testing.T) {
	for name, remove := range map[string]func(*world) error{
		"by the record": func(w *world) error { return w.removeWith(w.alarms, w.want(), w.recorded) },
		"by their names": func(w *world) error {
			return w.removeWith(w.alarms, w.want(), v1alpha1.Alarms{})
		},
		"as orphans": func(w *world) error { w.removeOrphans(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.refuse("CreateTopic")
			if err := w.tried(w.want(), false); err == nil || len(w.recorded.Rules) != 3 {
				t.Fatalf("%v, %+v", err, w.recorded)
			}
			if name == "by the record" {
				r, err := w.cloud.Rule(t.Context(), ruleID(w, v1alpha1.MetricCPU))
				r.Name = "renamed"
				if err := errors.Join(err, w.cloud.ModifyRule(t.Context(), r.ID, r)); err != nil {
					t.Fatal(err)
				}
			}
			w.refuse()
			if err := remove(w); err != nil {
				t.Fatal(err)
			}
			if left := w.shown(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// slowTopics is an SMN that takes all the time it is given to make a topic.
type slowTopics struct {
	*otc.Cloud
	limit time.Time
}

func (s *slowTopics) CreateTopic(ctx context.Context, _, _ string) (string, error) {
	s.limit, _ = ctx.Deadline()
	return "", context.DeadlineExceeded
}

func TestTopicUsesAtMostAThirdOfTheTime(t *testing.T) {
	w := newWorld(t)
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	cloud := &slowTopics{Cloud: w.cloud}
	_, _, err := w.ensureWith(ctx, w.process(cloud), w.want(), w.recorded, nil, w.record)
	if most := begin.Add(21 * time.Minute); !errors.Is(err, context.DeadlineExceeded) || cloud.limit.IsZero() || cloud.limit.After(most) {
		t.Errorf("%v, it had until %s of an hour from %s", err, cloud.limit, begin)
	}
	if len(w.sim.Rules()) != 3 {
		t.Errorf("%d rules", len(w.sim.Rules()))
	}
}

// Nor does one rule wait for another, or the subscription for the rules.
func TestEnsureContinuesAfterOneRefusal(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	w.sim.Unsubscribe(w.recorded.SubscriptionURN)
	if err := w.cloud.DeleteRule(t.Context(), ruleID(w, v1alpha1.MetricMemory)); err != nil {
		t.Fatal(err)
	}
	if err := w.cloud.EnableRule(t.Context(), ruleID(w, v1alpha1.MetricStorage), false); err != nil {
		t.Fatal(err)
	}
	w.refuse("SwitchAlarm")
	have, repaired, err := w.ensureWith(t.Context(), w.alarms, w.want(), w.recorded, w.listing(), w.record)
	if err == nil || !strings.Contains(err.Error(), "the storage rule cannot be repaired: ces EnableRule: 403 ces.9999 Not today") {
		t.Errorf("it says %v", err)
	}
	if diff := cmp.Diff([]string{"the memory rule was gone: created again", "the subscription was canceled: requested again"}, repaired); diff != "" {
		t.Error(diff)
	}
	if len(have.Rules) != 3 || have.Subscription != v1alpha1.SubscriptionPending {
		t.Errorf("there is %+v", have)
	}
	w.refuse("ListAlarms")
	if err := w.tried(w.want(), true); err == nil || !strings.Contains(err.Error(), "the alarm rules cannot be listed: ces ListRules: 403") || len(w.recorded.Rules) != 3 {
		t.Errorf("the rules cannot be listed: %v, %+v", err, w.recorded)
	}
	if n := w.sim.Count("ces", "ListAlarms"); n > 4 {
		t.Errorf("what could not be listed is asked for again: %d", n)
	}
}

// A rule that is there and not recorded is recorded although it cannot be repaired: what it says can be read.
func TestRuleIsRecordedWhenRepairFails(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	w.recorded = v1alpha1.Alarms{}
	want := w.want()
	want.Rules[0].ThresholdPercent = 80
	w.refuse("UpdateAlarm")
	if err := w.tried(want, false); err == nil || len(w.recorded.Rules) != 3 || w.recorded.Rules[0].ThresholdPercent != 75 {
		t.Errorf("%v, recorded %+v", err, w.recorded)
	}
}

// What could not be listed is not taken for gone, nor for an orphan.
func TestOrphansSkipsListsThatCouldNotBeRead(t *testing.T) {
	for ill, left := range map[string][]string{
		"ListTopics":        {"subscription", "topic"}, // the rules go
		"ListSubscriptions": nil,
		"ListAlarms":        {"rule", "rule", "rule", "subscription", "topic"}, // the topic waits for them
	} {
		t.Run(ill, func(t *testing.T) {
			w := newWorld(t)
			w.ensure(w.want())
			w.refuse(ill)
			w.listed = w.listing()
			if _, _, err := w.alarms.Orphans(t.Context(), w.clock(), nil, listOf()); err == nil || !strings.Contains(err.Error(), "Not today") {
				t.Errorf("without a list: %v", err)
			}
			var kinds []string
			for _, line := range w.shown() {
				kind, _, _ := strings.Cut(line, " ")
				kinds = append(kinds, kind)
			}
			if diff := cmp.Diff(left, kinds); diff != "" {
				t.Error(diff)
			}
			w.refuse()
			w.removeOrphans()
			if left := w.shown(); len(left) > 0 {
				t.Errorf("left in the end: %q", left)
			}
		})
	}
	w := newWorld(t)
	if err := w.listing().Err(); err != nil {
		t.Error(err)
	}
	w.sim.Configure(func(s *simcloud.Settings) { s.TopicQuota = 1 })
	if _, err := w.cloud.CreateTopic(t.Context(), "another", ""); err != nil {
		t.Fatal(err)
	}
	if err := w.tried(w.want(), true); !errors.Is(err, v1alpha1.ErrQuota) || len(w.recorded.Rules) != 3 {
		t.Errorf("no room for a topic: %v, %+v", err, w.recorded)
	}
}

// Only SMN's refusals are reported as such: a service that does not answer, a full quota or a rule that Cloud Eye refuses have
// reasons of their own.
func TestOnlySMNsRefusalIsSubscriptionRefused(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		operation, code string
		status          int
		refused         bool
	}{
		"an internal address":   {"Subscribe", "SMN.0069", http.StatusForbidden, true},
		"the topic":             {"CreateTopic", "SMN.0002", http.StatusBadRequest, true},
		"no answer":             {"Subscribe", "SMN.0002", http.StatusInternalServerError, false},
		"too many requests":     {"Subscribe", "SMN.0002", http.StatusTooManyRequests, false},
		"subscriptions at most": {"Subscribe", "SMN.0007", http.StatusForbidden, false},
		"topics at most":        {"CreateTopic", "SMN.0004", http.StatusForbidden, false},
	} {
		w.reset()
		w.answer.operation = tc.operation
		w.answer.fault = simcloud.Fault{Status: tc.status, Body: `{"code":"` + tc.code + `","message":"No"}`}
		_, _, err := w.ensureWith(t.Context(), w.alarms, w.want(), w.recorded, nil, w.record)
		if err == nil || errors.Is(err, v1alpha1.ErrSubscriptionRefused) != tc.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.reset()
	w.refuse("CreateAlarm")
	if _, _, err := w.ensureWith(t.Context(), w.alarms, w.want(), w.recorded, nil, w.record); err == nil || errors.Is(err, v1alpha1.ErrSubscriptionRefused) {
		t.Errorf("Cloud Eye refuses: %v", err)
	}
	w.reset()
	w.refuse("Subscribe")
	w.answer.operation, w.answer.fault = "CreateAlarm", simcloud.Fault{Status: http.StatusServiceUnavailable}
	if _, _, err := w.ensureWith(t.Context(), w.alarms, w.want(), v1alpha1.Alarms{}, nil, w.record); err == nil || errors.Is(err, v1alpha1.ErrSubscriptionRefused) {
		t.Errorf("SMN refuses while Cloud Eye does not answer: %v", err)
	}
}
