// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"io"
	"strings"
	"time"
)

// withMessage returns a function that posts an alarm of our topic with another message in it.
func withMessage(message string) func(*harness) {
	return func(s *harness) { s.post(s.alarm(m{"message": message}).json()) }
}

func envelopeAttacks() []attack {
	padded := func(s *harness, size int) string {
		body := s.alarm(nil).json()
		return body + strings.Repeat(" ", size-len(body))
	}
	withHeader := func(key, value string) func(*harness) {
		return func(s *harness) { s.post(s.alarm(nil).json(), key, value) }
	}
	inChunks := func(s *harness, body string) { s.send(io.MultiReader(strings.NewReader(body))) } // of unknown length
	in2099 := alarm("alarm", ruleID, "rds039_disk_util", instance, time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC))
	const ignored, stored, unreadable, tooLarge = resultIgnored, resultStored, resultUnreadable, resultTooLarge
	return []attack{
		{4, "no JSON", func(s *harness) { s.post("hello") }, 400, resultMalformed, 0},
		{8, "an alarm of the year 2099", withMessage(in2099), 200, unreadable, 0},
		{8, "the newer schema", withMessage(`{"version":"v1","data":{}}`), 200, unreadable, 0},
		{9, "a body of the limit", func(s *harness) { s.post(padded(s, MaxBody)) }, 200, stored, 1},
		{9, "a byte more", func(s *harness) { s.post(padded(s, MaxBody+1)) }, 413, tooLarge, 0},
		{9, "a byte more, in chunks", func(s *harness) { inChunks(s, padded(s, MaxBody+1)) }, 413, tooLarge, 0},
		{9, "chunks without a length", func(s *harness) { inChunks(s, s.alarm(nil).json()) }, 200, stored, 1},
		{9, "the content type of a form", withHeader("Content-Type", "multipart/form-data; boundary=x"), 200, stored, 1},
		{10, "a header of another type", withHeader("X-SMN-MESSAGE-TYPE", "SubscriptionConfirmation"), 200, stored, 1},
		{10, "a header of another topic", withHeader("X-SMN-TOPIC-URN", theirTopic), 200, stored, 1},
		{11, "a known type in lower case", func(s *harness) {
			s.post(s.alarm(m{"type": "notification"}).json())
		}, 200, ignored, 0},
	}
}
