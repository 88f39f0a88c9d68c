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

// cloudSteps returns and clears the steps that created or removed rules and the topic.
func (w *world) cloudSteps() (steps []string) {
	w.withLock(func() {
		for _, s := range w.steps {
			if slices.Contains([]string{"topic", "rules", "no rules", "no topic"}, s) {
				steps = append(steps, s)
			}
		}
		w.steps = nil
	})
	return steps
}

func TestTopicIsCreatedBeforeTheFirstRulesAndRemovedAfterTheLast(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.run(c)
		w.advance(time.Minute)
		if got := w.cloudSteps(); !slices.Equal(got, []string{"topic", "rules"}) || c.options.Kube.Topic() != w.topic {
			t.Errorf("on: %v, recorded %+v", got, c.options.Kube.Topic())
		}
		w.setSwitch(new(false))
		w.advance(time.Minute)
		w.checkGone()
		if got := w.cloudSteps(); !slices.Equal(got, []string{"no rules", "no topic"}) || c.options.Kube.Topic() != (v1alpha1.Topic{}) {
			t.Errorf("off: %v, recorded %+v", got, c.options.Kube.Topic())
		}
	})
}

// A former leader may have created the topic and the rules, and ended before it could record or remove them.
func TestWhatAFormerLeaderHasLeftIsRemovedByTheFirstSweep(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.remove(w.rdss())
		w.topic.URN, w.unreachable = "urn", true
		w.raise(v1alpha1.MetricStorage)
		w.run(w.process())
		w.advance(time.Minute)
		w.withLock(func() { w.unreachable = false })
		w.advance(6 * time.Minute)
		w.checkGone()
	})
}

// Rules must not wait for SMN, because the sweep acts on them without any message.
func TestArmingWaitsOnlyForTheFirstCheckOfTheTopic(t *testing.T) {
	for name, tc := range map[string]struct {
		alter  func(*world)
		waits  time.Duration
		reason string
	}{
		"SMN hangs": {func(w *world) {
			w.onTopic = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		}, topicTime, autopilot.SubscriptionPending},
		"SMN does not answer":            {func(w *world) { w.onTopic = noTopic }, 0, autopilot.SubscriptionPending},
		"SMN refuses":                    {func(w *world) { w.topic.State = v1alpha1.SubscriptionRefused }, 0, autopilot.SubscriptionRefused},
		"the check panics":               {func(w *world) { w.onTopic = func(context.Context) error { panic("broken") } }, 0, autopilot.SubscriptionPending},
		"the API server stores no topic": {func(w *world) { w.topicRefusal = "denied" }, 0, autopilot.SubscriptionPending},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			tc.alter(w)
			checks, onTopic := 0, w.onTopic
			w.onTopic = func(ctx context.Context) error {
				w.withLock(func() { checks++ })
				if onTopic == nil {
					return nil
				}
				return onTopic(ctx)
			}
			w.run(w.process())
			hasRules := func() (has bool) { w.withLock(func() { has = len(w.states) > 0 }); return has }
			if w.advance(tc.waits - time.Second); tc.waits > 0 && hasRules() {
				t.Error("arming has not waited")
			}
			if w.advance(5 * time.Second); !hasRules() {
				t.Error("arming still waits")
			}
			w.checkCondition(name, v1alpha1.ConditionArmed, metav1.ConditionFalse, tc.reason)
			w.advance(10 * time.Minute)
			w.withLock(func() {
				if checks > 40 {
					t.Errorf("%d checks of the topic in 10 minutes", checks)
				}
				w.onTopic, w.topicRefusal, w.topic.State = nil, "", v1alpha1.SubscriptionConfirmed
			})
			w.advance(time.Minute)
			if !w.armed() {
				t.Errorf("not armed once all is well: %+v", w.rap().Status.Conditions)
			}
		})
	}
}

func TestConditionFollowsTheSubscriptionBetweenSweeps(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		requested := metav1.NewTime(time.Now())
		w.topic.State = v1alpha1.SubscriptionPending
		w.run(w.process())
		w.advance(30 * time.Second)
		w.checkCondition("requested", v1alpha1.ConditionArmed, metav1.ConditionFalse, autopilot.SubscriptionPending)
		w.withLock(func() { w.topic.RequestedTime = &requested })
		w.advance(31 * time.Second)
		w.withLock(func() { w.topic.State = v1alpha1.SubscriptionConfirmed })
		w.advance(confirmationPoll + time.Second)
		w.checkCondition("confirmed", v1alpha1.ConditionArmed, metav1.ConditionTrue, autopilot.ArmedReason)
		w.withLock(func() { w.topic.State = v1alpha1.SubscriptionPending })
		w.advance(6 * time.Minute)
		w.checkCondition("cancelled", v1alpha1.ConditionArmed, metav1.ConditionFalse, autopilot.SubscriptionPending)
	})
}
