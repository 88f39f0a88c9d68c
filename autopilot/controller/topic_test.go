// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

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

// Rules must not wait for SMN, because the sweep acts on them without any message.
func TestArmingWaitsOnlyForTheFirstCheckOfTheTopic(t *testing.T) {
	const pending = autopilot.SubscriptionPending
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	panics := func(context.Context) error { panic("broken") }
	for name, tc := range map[string]struct {
		alter  func(*world)
		waits  time.Duration
		reason string
	}{
		"SMN hangs":                  {func(w *world) { w.onTopic = hangs }, topicTime, pending},
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
			w.withLock(func() { w.onTopic, w.topicRefusal = noError, "" })
			if w.advance(time.Minute); !w.armed() {
				t.Errorf("not armed: %+v", w.rap().Status.Conditions)
			}
		})
	}
}
