// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// The state of a rule can be read even if SMN notifies nobody.
func TestRulesDoNotWaitForSMN(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	before := w.objects()
	for name, tt := range map[string]struct {
		refused       []string
		onlySnapshots bool // a run without a snapshot does not need these operations
	}{
		"no topic":                     {refused: []string{"CreateTopic"}},
		"no subscription":              {refused: []string{"Subscribe"}},
		"no subscriptions list":        {refused: []string{"ListTopicSubscriptions"}},
		"no list of topics":            {refused: []string{"ListTopics"}, onlySnapshots: true},
		"no list of all subscriptions": {refused: []string{"ListSubscriptions"}, onlySnapshots: true},
		"no call of SMN": {refused: []string{"ListTopics", "ListSubscriptions", "ListTopicSubscriptions", "ShowTopic", "CreateTopic",
			"UpdateTopic", "Subscribe", "DeleteSubscription"}},
	} {
		for _, withSnapshot := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, with a snapshot %t", name, withSnapshot), func(t *testing.T) {
				w.t = t
				w.reset()
				try := func() error {
					if withSnapshot {
						return w.tryEnsure(w.desired(), w.snapshot())
					}
					return w.tryEnsure(w.desired(), nil)
				}
				fails := withSnapshot || !tt.onlySnapshots
				for range 3 {
					w.refuse(tt.refused...)
					err := try()
					text := fmt.Sprint(err)
					if fails && !strings.Contains(text, "403 SMN.9999 Not today") || strings.Contains(text, "\n") {
						t.Errorf("error %v, want one line with the refusal", err)
					}
					if fails == (err == nil) || len(w.sim.Rules()) != 3 || len(w.recorded.Rules) != 3 {
						t.Fatalf("%d rules, recorded %+v, %v", len(w.sim.Rules()), w.recorded, err)
					}
				}
				created, updated := w.sim.Count("ces", "CreateAlarm"), w.sim.Count("ces", "UpdateAlarm")
				if created != 3 || updated != 0 {
					t.Errorf("%d rules were created and %d updated, want 3 and none", created, updated)
				}
				w.refuse()
				if err := try(); err != nil {
					t.Fatal(err)
				}
				w.checkRecord()
				if diff := cmp.Diff(before, w.objects()); diff != "" {
					t.Error(diff)
				}
				w.checkNothingToDo(w.desired())
			})
		}
	}
}

// SMN refuses and the record is lost, so Ensure does not know the topic. It must not remove the topic from the rules.
func TestRulesKeepTheirTopicWhileItIsUnknown(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	before := w.objects()
	w.recorded = v1alpha1.Alarms{}
	w.refuse("ListTopics", "CreateTopic")
	for _, listed := range []*alarms.Snapshot{nil, w.snapshot()} {
		if err := w.tryEnsure(w.desired(), listed); err == nil || len(w.recorded.Rules) != 3 {
			t.Errorf("%v, %+v", err, w.recorded)
		}
	}
	if diff := cmp.Diff(before, w.objects()); diff != "" {
		t.Error(diff)
	}
}

// A renamed rule no longer has our name. Its recorded id and the mark in its description show that it is ours.
func TestRenamedRuleWithoutTopicIsRemoved(t *testing.T) {
	w := newWorld(t)
	w.refuse("CreateTopic")
	if err := w.tryEnsure(w.desired(), nil); err == nil || len(w.recorded.Rules) != 3 {
		t.Fatalf("%v, %+v", err, w.recorded)
	}
	w.refuse()
	rename := modifyRule(v1alpha1.MetricCPU, func(r *otc.Rule) { r.Name = "renamed" })
	if err := errors.Join(rename(w, t.Context()), w.removeWith(w.alarms, w.desired(), w.recorded)); err != nil {
		t.Fatal(err)
	}
	if left := w.objects(); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// slowTopics is a cloud whose CreateTopic hangs until its deadline.
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
	_, _, err := w.ensureWith(ctx, w.process(cloud), w.desired(), w.recorded, nil, w.record)
	latest := begin.Add(21 * time.Minute)
	if !errors.Is(err, context.DeadlineExceeded) || cloud.limit.IsZero() || cloud.limit.After(latest) {
		t.Errorf("%v, deadline %s, want at most 20 minutes after %s", err, cloud.limit, begin)
	}
	if len(w.sim.Rules()) != 3 {
		t.Errorf("%d rules", len(w.sim.Rules()))
	}
}

func TestEnsureContinuesAfterOneRefusal(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	w.sim.Unsubscribe(w.recorded.SubscriptionURN)
	err := errors.Join(deleteRule(v1alpha1.MetricMemory)(w, t.Context()),
		w.cloud.EnableRule(t.Context(), ruleID(w, v1alpha1.MetricStorage), false))
	if err != nil {
		t.Fatal(err)
	}
	w.refuse("SwitchAlarm")
	observed, repaired, err := w.ensureWith(t.Context(), w.alarms, w.desired(), w.recorded, w.snapshot(), w.record)
	const text = "the storage rule cannot be repaired: ces EnableRule: 403 ces.9999 Not today"
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v", err)
	}
	want := []string{"the memory rule was restored", "the subscription is requested again"}
	if diff := cmp.Diff(want, repaired); diff != "" {
		t.Error(diff)
	}
	if len(observed.Rules) != 3 || observed.Subscription != v1alpha1.SubscriptionPending {
		t.Errorf("observed %+v", observed)
	}
	w.refuse("ListAlarms")
	err = w.tryEnsure(w.desired(), w.snapshot())
	const unlisted = "the alarm rules cannot be listed: ces ListRules: 403"
	if err == nil || !strings.Contains(err.Error(), unlisted) || len(w.recorded.Rules) != 3 {
		t.Errorf("without a list of rules: %v, %+v", err, w.recorded)
	}
}

// The state of a rule that cannot be repaired can be read.
func TestRuleIsRecordedWhenRepairFails(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	w.recorded = v1alpha1.Alarms{}
	want := w.desired()
	want.Rules[0].ThresholdPercent = 80
	w.refuse("UpdateAlarm")
	err := w.tryEnsure(want, nil)
	if err == nil || len(w.recorded.Rules) != 3 || w.recorded.Rules[0].ThresholdPercent != 75 {
		t.Errorf("%v, recorded %+v", err, w.recorded)
	}
}

func TestOrphansSkipsListsThatCouldNotBeRead(t *testing.T) {
	for refused, left := range map[string][]string{
		"ListTopics":        {"subscription", "topic"}, // the rules go
		"ListSubscriptions": nil,
		"ListAlarms":        {"rule", "rule", "rule", "subscription", "topic"}, // the topic waits for them
	} {
		t.Run(refused, func(t *testing.T) {
			w := newWorld(t)
			w.ensure(w.desired())
			w.refuse(refused)
			w.listed = w.snapshot()
			_, _, err := w.alarms.Orphans(t.Context(), w.clock(), nil, listOf())
			if err == nil || !strings.Contains(err.Error(), "Not today") {
				t.Errorf("without a list: %v", err)
			}
			if diff := cmp.Diff(left, w.kinds()); diff != "" {
				t.Error(diff)
			}
			w.refuse()
			w.removeOrphans()
			if left := w.objects(); len(left) > 0 {
				t.Errorf("left in the end: %q", left)
			}
		})
	}
}

// A service that does not answer, a full quota and a refusal by Cloud Eye have reasons of their own.
func TestOnlyRefusalBySMNIsSubscriptionRefused(t *testing.T) {
	w := newWorld(t)
	type faults = map[string]simcloud.Fault
	answer := func(status int, code string) simcloud.Fault {
		return simcloud.Fault{Status: status, Body: `{"code":"` + code + `","message":"No"}`}
	}
	for name, tc := range map[string]struct {
		faults  faults
		refused bool
	}{
		"address":                {faults{"Subscribe": answer(403, "SMN.0069")}, true},
		"topic":                  {faults{"CreateTopic": answer(400, "SMN.0002")}, true},
		"no answer":              {faults{"Subscribe": answer(500, "SMN.0002")}, false},
		"too many requests":      {faults{"Subscribe": answer(429, "SMN.0002")}, false},
		"quota of subscriptions": {faults{"Subscribe": answer(403, "SMN.0007")}, false},
		"quota of topics":        {faults{"CreateTopic": answer(403, "SMN.0004")}, false},
		"Cloud Eye refuses":      {faults{"CreateAlarm": answer(403, "ces.9999")}, false},
		"SMN refuses, and Cloud Eye does not answer": {
			faults{"Subscribe": answer(403, "SMN.0069"), "CreateAlarm": {Status: http.StatusServiceUnavailable}}, false,
		},
	} {
		w.reset()
		w.faults.Store(&tc.faults)
		err := w.tryEnsure(w.desired(), nil)
		if err == nil || errors.Is(err, v1alpha1.ErrSubscriptionRefused) != tc.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
