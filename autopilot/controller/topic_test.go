// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
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
		alter func(*world)
		waits time.Duration
	}{
		"SMN hangs":                      {func(w *world) { w.onTopic = hangs }, topicTime},
		"the check panics":               {func(w *world) { w.onTopic = panics }, 0},
		"the topic cannot be stored":     {func(w *world) { w.topicRefusal = "denied" }, 0},
		"the ConfigMap cannot be read":   {func(w *world) { w.topicHidden = &autopilot.RefusedError{Message: "denied"} }, 0},
		"the API server does not answer": {func(w *world) { w.topicHidden = autopilot.ErrKubernetes }, 0},
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
			w.checkCondition(name, v1alpha1.ConditionArmed, metav1.ConditionFalse, pending)
			w.advance(10 * time.Minute)
			if checks > 40 {
				t.Errorf("%d checks of the topic in 10 minutes", checks)
			}
			w.withLock(func() { w.onTopic, w.topicRefusal, w.topicHidden = noError, "", nil })
			if w.advance(time.Minute); !w.armed() {
				t.Errorf("not armed: %+v", w.rap().Status.Conditions)
			}
		})
	}
}

// The receivers read the topic from the ConfigMap, and refuse each message without it.
func TestConfigMapOfTheTopicIsRepairedWithinSeconds(t *testing.T) {
	for name, change := range map[string]func(context.Context, dynamic.ResourceInterface) error{
		"deleted": func(ctx context.Context, in dynamic.ResourceInterface) error {
			return in.Delete(ctx, k8s.TopicConfigMap, metav1.DeleteOptions{})
		},
		"edited": func(ctx context.Context, in dynamic.ResourceInterface) error {
			_, err := in.Patch(ctx, k8s.TopicConfigMap, types.MergePatchType, []byte(`{"data":{"topicURN":"urn:other"}}`), metav1.PatchOptions{})
			return err
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			c := w.process()
			w.run(c)
			w.advance(time.Hour)
			right := c.options.Kube.Topic()
			w.must(change(t.Context(), w.admin.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default")))
			if w.advance(3 * time.Second); right.URN == "" || right != c.options.Kube.Topic() {
				t.Errorf("%+v, want %+v", c.options.Kube.Topic(), right)
			}
			w.withLock(func() { w.topicHidden = autopilot.ErrKubernetes }) // says nothing about the topic
			if w.advance(time.Hour); !w.armed() {
				t.Errorf("not armed: %+v", w.rap().Status.Conditions)
			}
		})
	}
}
