// SPDX-License-Identifier: Apache-2.0

// Package shorten shortens texts that others have written: the API server, admission webhooks, the cloud, senders.
package shorten

import "strings"

// Limit is 512 bytes. A condition holds at most 32 KB, an event 1 KB, and a status keeps twenty texts. Admission
// webhooks may refuse with any length.
const Limit = 512

const ellipsis = "…"

// Foreign returns a text that others have written as one line of at most Limit bytes. Every such text must pass it
// where it enters the process, because a longer one would make the API server refuse the whole status. Of a longer text
// it keeps the begin and the end, because the API server puts the refused object between the field and the reason.
func Foreign(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= Limit {
		return s
	}
	const half = Limit / 2
	return To(s, half) + strings.ToValidUTF8(s[len(s)-half:], "")
}

// To returns at most so many bytes of a text, and never a part of a character. A cut text ends with an ellipsis.
func To(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:max(0, most-len(ellipsis))], "") + ellipsis
}
