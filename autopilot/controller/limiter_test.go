// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestFlavorChangeLimiter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	key := func(name string) Key { return Key{"ns", name} }
	version := 0
	changing := func(name string, age time.Duration, status string) *v1alpha1.RdsAutopilot {
		version++
		a := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: strconv.Itoa(version)}}
		at, since := metav1.NewMicroTime(now.Add(-age)), metav1.NewTime(now.Add(-age))
		a.Status.Pending = &v1alpha1.Intent{Kind: v1alpha1.KindFlavor, DecisionTime: at, AskedTime: &at}
		a.Status.Instance = &v1alpha1.Instance{Status: status, ActiveSince: &since}
		return a
	}
	free := func(t *testing.T, l *flavorChangeLimiter, most int) bool {
		t.Helper()
		defer l.release(key("asks"))
		return l.take(key("asks"), most, now)
	}
	t.Run("rounds that are about to store an intent", func(t *testing.T) {
		l := newFlavorChangeLimiter()
		if !l.take(key("a"), 2, now) || !l.take(key("b"), 2, now) || l.take(key("c"), 2, now) || !l.take(key("a"), 2, now) {
			t.Error("two places are not given to two databases")
		}
		l.release(key("b"))
		if !l.take(key("c"), 2, now) {
			t.Error("a place that was given back is not free")
		}
	})
	t.Run("a stored intent counts from the write on, whatever older events come", func(t *testing.T) {
		l := newFlavorChangeLimiter()
		before := changing("a", 0, "ACTIVE")
		before.Status.Pending = nil
		stored := changing("a", 0, "ACTIVE")
		l.take(key("a"), 1, now)
		l.observe(stored)
		l.release(key("a"))
		l.observe(before)
		if free(t, l, 1) {
			t.Error("the event of before freed the place")
		}
		ended := changing("a", 0, "ACTIVE")
		ended.Status.Pending = nil
		l.observe(ended)
		if !free(t, l, 1) || len(l.places) > 0 {
			t.Errorf("a change that ended holds its place: %+v", l.places)
		}
	})
	for _, tc := range []struct {
		name  string
		of    *v1alpha1.RdsAutopilot
		holds bool
	}{
		{"under way", changing("a", 14*time.Minute, "MODIFYING"), true},
		{"stalled", changing("a", 15*time.Minute, "ACTIVE"), false},
		{"failed for an hour", changing("a", time.Hour, "FAILED"), true},
		{"failed for two hours", changing("a", 2*time.Hour, "FAILED"), false},
	} {
		l := newFlavorChangeLimiter()
		l.observe(tc.of)
		if free(t, l, 1) == tc.holds {
			t.Errorf("%s: holds its place %t, want %t", tc.name, !tc.holds, tc.holds)
		}
	}
	l := newFlavorChangeLimiter()
	refused := changing("a", time.Minute, "ACTIVE")
	refused.Status.Pending.Refusal = &v1alpha1.Refusal{Count: 1}
	l.observe(refused)
	if !free(t, l, 1) {
		t.Error("what the API server refuses holds a place")
	}
}
