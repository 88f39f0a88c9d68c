// SPDX-License-Identifier: Apache-2.0

package webhook

import "time"

// Limits of the receiver, each with the status beyond it. SMN gives up after 5 s and repeats only messages that were
// answered 5xx (docs/cloud-facts.md, Delivery). So every answer is sent within 4 s, and none is 429. There is no limit
// per source address: SMN's addresses are not fixed, and behind an ingress all senders have one address. The limits of
// certificates and of the fields of a message are in autopilot/smn/limits.go.

// MaxBody is the largest body in bytes; beyond it the answer is 413. A message has at most 256 KB, and escaping
// doubles it.
const MaxBody = 1 << 20

// MaxAhead is how far a message may be ahead of our clock; beyond it the answer is 403. An alarm inside that is further
// ahead is unreadable.
const MaxAhead = 5 * time.Minute

// Connections limits the open connections, some 35 KB each. Others wait until one of them ends, after writeTime at the
// latest.
const Connections = 1024

// Limits of a connection.
const (
	// maxHeader is in bytes; beyond it net/http answers 431. SMN's headers have less than 1 KB.
	maxHeader = 32 << 10
	// readTime is for headers and body. A body that takes longer is answered 503, because its sender may be honest.
	readTime = 3 * time.Second
	// writeTime counts from the end of the headers. An answer fits into one packet, so only a client that does not read
	// is cut off.
	writeTime = 6 * time.Second
)

// Limits of the work on messages. Beyond each the answer is 503.
const (
	// answerTime is for the whole answer, including the API server's part.
	answerTime = 3500 * time.Millisecond
	// smallBody is in bytes. Alarms have 2 to 4 KB. A larger body needs one of largeSlots.
	smallBody = 8 << 10
	// largeSlots limits the large bodies, because each costs five times its size in memory. Connections alone would allow
	// five gigabytes.
	largeSlots = 16
	// retryAfter is in seconds. The header has a random value up to twice that, so that refused senders do not return
	// all at once.
	retryAfter = 5
	// confirmTime is for one call of a confirmation link.
	confirmTime = 2 * time.Second
	// lateStart is how long after its arrival the work on a message may begin. A message that begins later had a slow
	// sender. If its work does not end in time, the result is incomplete.
	lateStart = 2 * time.Second
)

// linesPerSecond limits the log lines of one result about messages that were not stored. A stranger can post thousands
// of messages per second, and would displace the lines that matter. The metric counts every message.
const linesPerSecond = 5
