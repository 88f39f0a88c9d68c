// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// LongestWait is the longest wait after a refusal. A next attempt that is later was written by a clock that was ahead.
const LongestWait = 15 * time.Minute

// ClampTimes sets the leader's own time stamps that are later than now to now. A clock that was hours ahead has written
// them. Otherwise storage would wait until the clock reaches them. ClampTimes modifies the status, but not the elements
// of Changes, which other copies share. It leaves the times of Cloud Eye and of the messages as they are.
func ClampTimes(s *v1alpha1.Status, now time.Time) {
	clamp := func(at *time.Time, latest time.Time) {
		if at.After(latest) {
			*at = latest
		}
	}
	toSecond := func(t *metav1.Time) {
		if t != nil {
			clamp(&t.Time, Seconds(now).Time)
		}
	}
	toMicro := func(t *metav1.MicroTime) {
		if t != nil {
			clamp(&t.Time, Micro(now).Time)
		}
	}
	if s.Instance != nil {
		toSecond(s.Instance.ActiveSince)
	}
	toSecond(s.OverThresholdSince)
	if s.ReadOnly != nil {
		toSecond(&s.ReadOnly.SinceTime)
	}
	for _, i := range s.Intents() {
		toMicro(&i.DecisionTime)
		toMicro(i.AskedTime)
		toMicro(i.JobTime)
		if i.Refusal != nil {
			toMicro(&i.Refusal.Time)
			if i.Refusal.NextTime != nil {
				clamp(&i.Refusal.NextTime.Time, Micro(now.Add(LongestWait)).Time)
			}
		}
	}
	for i := range s.Unfulfilled {
		toSecond(&s.Unfulfilled[i].SinceTime)
	}
	for i := range s.Held {
		toSecond(&s.Held[i].SinceTime)
	}
	if s.Deferred != nil {
		toSecond(&s.Deferred.FirstTime)
		toSecond(&s.Deferred.LastTime)
	}
	if !slices.ContainsFunc(s.Changes, func(ch v1alpha1.Change) bool { return ch.CompletionTime.After(now) }) {
		return
	}
	s.Changes = slices.Clone(s.Changes)
	for i := range s.Changes {
		toMicro(&s.Changes[i].CompletionTime)
		for _, at := range []**metav1.MicroTime{&s.Changes[i].DecisionTime, &s.Changes[i].StartTime} {
			if *at != nil && (*at).After(now) {
				*at = Micro(now)
			}
		}
	}
}
