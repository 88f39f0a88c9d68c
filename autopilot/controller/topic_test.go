// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

// noTopic is an SMN that does not answer.
func noTopic(context.Context) error { return errNoAnswer }

// checkGone checks that nothing of the database is in the cloud and in the status, and that there is no topic.
func (w *world) checkGone() {
	w.t.Helper()
	rap := w.rap()
	w.withLock(func() {
		if len(w.states) > 0 || w.topic.URN != "" || rap != nil && len(rap.Status.Alarms.Rules) > 0 {
			w.t.Errorf("rules %v, topic %+v, %+v; want none", w.states, w.topic, rap)
		}
	})
}

func TestTopicIsCreatedBeforeTheFirstRulesAndRemovedAfterTheLast(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.run(c)
		check := func(recorded string, want ...string) {
			t.Helper()
			w.advance(time.Minute)
			w.steps = slices.DeleteFunc(w.steps, func(s string) bool { return !slices.Contains(want, s) })
			if urn := c.options.Kube.Topic().URN; !slices.Equal(w.steps, want) || urn != recorded {
				t.Errorf("%v, recorded %q; want %v, %q", w.steps, urn, want, recorded)
			}
		}
		check("urn", "topic", "rules")
		w.setSwitch(new(false))
		check("", "no rules", "no topic")
		w.checkGone()
	})
}

// Rules must not wait for SMN, because the sweep acts on them without any message.
func TestArmingWaitsOnlyForTheFirstCheckOfTheTopic(t *testing.T) {
	const pending, refused = autopilot.SubscriptionPending, autopilot.SubscriptionRefused
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	panics := func(context.Context) error { panic("broken") }
	for name, tc := range map[string]struct {
		alter  func(*world)
		waits  time.Duration
		reason string
	}{
		"SMN hangs":                  {func(w *world) { w.onTopic = hangs }, topicTime, pending},
		"SMN does not answer":        {func(w *world) { w.onTopic = noTopic }, 0, pending},
		"SMN refuses":                {func(w *world) { w.topic.State = v1alpha1.SubscriptionRefused }, 0, refused},
		"the check panics":           {func(w *world) { w.onTopic = panics }, 0, pending},
		"the topic cannot be stored": {func(w *world) { w.topicRefusal = "denied" }, 0, ""},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			tc.alter(w)
			checks, onTopic := 0, w.onTopic
			w.onTopic = func(ctx context.Context) error { w.withLock(func() { checks++ }); return onTopic(ctx) }
			hasRules := func() (has bool) { w.withLock(func() { has = len(w.states) > 0 }); return has }
			w.run(w.process())
			if w.advance(tc.waits - time.Second); tc.waits > 0 && hasRules() {
				t.Error("arming has not waited")
			}
			if w.advance(5 * time.Second); !hasRules() {
				t.Error("arming still waits")
			}
			if tc.reason != "" {
				w.checkCondition(name, v1alpha1.ConditionArmed, metav1.ConditionFalse, tc.reason)
			}
			w.advance(10 * time.Minute)
			if checks > 40 {
				t.Errorf("%d checks of the topic in 10 minutes", checks)
			}
			w.withLock(func() { w.onTopic, w.topicRefusal, w.topic.State = noError, "", v1alpha1.SubscriptionConfirmed })
			if w.advance(time.Minute); !w.armed() {
				t.Errorf("not armed: %+v", w.rap().Status.Conditions)
			}
		})
	}
}

func TestDatabasesAreArmedAgainWhenTheStateOfTheTopicChanges(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(w.process())
		requested := metav1.NewTime(time.Now())
		check := func(state v1alpha1.SubscriptionState, after time.Duration, status metav1.ConditionStatus, reason string) {
			t.Helper()
			w.withLock(func() { w.topic.State, w.topic.RequestedTime = state, &requested })
			w.advance(after)
			w.checkCondition(string(state), v1alpha1.ConditionArmed, status, reason)
		}
		check(v1alpha1.SubscriptionPending, time.Second, metav1.ConditionFalse, autopilot.SubscriptionPending)
		check(v1alpha1.SubscriptionConfirmed, confirmationPoll, metav1.ConditionTrue, autopilot.ArmedReason)
		check(v1alpha1.SubscriptionPending, 6*time.Minute, metav1.ConditionFalse, autopilot.SubscriptionPending)
	})
}
