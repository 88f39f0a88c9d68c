// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"strings"
	"time"
)

// event returns the body of an authentic alarm of that time with a message id of its own.
func event(s *harness, n int, status string, at time.Time) string {
	return s.alarm(m{
		"message_id": fmt.Sprintf("%032x", n), "timestamp": at.UTC().Format("2006-01-02T15:04:05Z"),
		"message": alarm(status, ruleID, "rds039_disk_util", instance, at),
	}).json()
}

func replayAttacks() []attack {
	const duplicate, stale, stored, expired = resultDuplicate, resultStale, resultStored, resultExpired
	stamped := func(text string) func(*harness) {
		return func(s *harness) { s.post(s.alarm(m{"timestamp": text}).json()) }
	}
	ahead := func(d time.Duration) func(*harness) { return stamped(noon().Add(d).Format("2006-01-02T15:04:05Z")) }
	return []attack{
		{40, "the same message twice", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.post(s.alarm(nil).json())
		}, 200, duplicate, 1},
		{40, "the same confirmation twice", func(s *harness) {
			s.post(s.confirmation(nil).json())
			s.post(s.confirmation(nil).json())
		}, 200, resultConfirmed, 0},
		{41, "the same alarm with a new message id", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.post(s.alarm(m{"message_id": strings.Repeat("0", 32)}).json())
		}, 200, stale, 1},
		{45, "the same message after a restart", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.start()
			s.post(s.alarm(nil).json())
		}, 200, duplicate, 1},
		{46, "repeated after a week", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.setNow(noon().Add(7 * 24 * time.Hour))
			s.post(s.alarm(nil).json())
		}, 403, expired, 1},
		{46, "repeated within the hour, after a newer one", func(s *harness) {
			recorded := event(s, 1, "alarm", noon())
			s.post(recorded)
			s.post(event(s, 2, "ok", noon().Add(time.Minute)))
			s.setNow(noon().Add(30 * time.Minute))
			s.post(recorded)
		}, 200, stale, 2},
		{47, "4 minutes ahead", ahead(4 * time.Minute), 200, stored, 1},
		{47, "6 minutes ahead", ahead(6 * time.Minute), 403, expired, 0},
		{47, "59 minutes old", ahead(-59 * time.Minute), 200, stored, 1},
		{47, "61 minutes old", ahead(-61 * time.Minute), 403, expired, 0},
		{47, "year 0", stamped("0000-01-01T00:00:00Z"), 403, expired, 0},
		{47, "year 9999", stamped("9999-12-31T23:59:59Z"), 403, expired, 0},
		{48, "ok, then the alarm before it", func(s *harness) {
			s.post(event(s, 1, "ok", noon()))
			s.post(event(s, 2, "alarm", noon().Add(-time.Minute)))
		}, 200, stale, 1},
		{49, "the alarm fires each minute: one signal is kept", func(s *harness) {
			for i := range 20 {
				at := noon().Add(time.Duration(i) * time.Minute)
				s.setNow(at)
				s.post(event(s, i, "alarm", at))
			}
			if n := len(s.store.stored.Status.Intake.Signals); n != 1 {
				s.Errorf("%d signals are kept, want 1", n)
			}
		}, 200, stored, 20},
	}
}
