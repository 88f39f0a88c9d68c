// SPDX-License-Identifier: Apache-2.0

package webhook

import "time"

// Limits of the receiver, each with the status that a sender sees beyond it. SMN gives up after 5 s and sends again
// only what was answered 5xx (docs/cloud-facts.md, Delivery); so nothing is answered later than 4 s, and never 429. There is
// no limit per source address: SMN's addresses are not fixed, and behind an ingress all are one. What a certificate may
// cost, and the depth and lengths within a message, are in autopilot/smn/limits.go.
const (
	// MaxBody in bytes → 413. A message is at most 256 KB; escaping doubles it.
	MaxBody = 1 << 20

	connections = 1024             // open ones, some 35 KB each; beyond it the one that waits longest for a whole request is closed
	maxHeader   = 32 << 10         // bytes → 431 by net/http. SMN's headers are under 1 KB
	readTime    = 3 * time.Second  // for headers and body → 503: a slow body may be an honest one. Headers alone: closed
	writeTime   = 6 * time.Second  // since the headers; an answer fits one packet, so only a client that does not read is cut off
	idleTime    = 90 * time.Second // until a connection without a request is closed; longer than a proxy keeps it (nginx: 60 s), which might send on it just then

	answerTime = 3500 * time.Millisecond // for everything, the API server included → 503
	graceTime  = 250 * time.Millisecond  // for work that was cut to say why; then the answer goes without it

	smallBody  = 8 << 10                 // bytes; alarms have 2–4 KB. A larger body needs one of …
	largeSlots = 16                      // … so many, because it costs five times its size in memory; if none is free, the connection that has stalled longest is closed, then → 503
	inFlight   = 768                     // messages being worked on, waits included; one whose body is still being sent has no slot yet → 503
	slotWait   = 1500 * time.Millisecond // for a slot of either kind: a refused message comes back only after a minute, so in a storm it had better wait
	retryAfter = 5                       // seconds, up to twice that: refused senders should not come back together

	confirming    = 32              // confirmation links called at a time; the others wait → 503
	confirmTime   = 2 * time.Second // for one of them → 503
	lookupsPerSec = 100             // at the API server, for topics that the cache lacks, and as many for rules of authentic alarms; the others wait → 503
	lookupPlaces  = 160             // messages that wait for either → 503. With those that wait for certificates they are fewer than inFlight

	// MaxAhead is how far a message may be ahead of our clock → 403; beyond that the alarm in it is unreadable.
	MaxAhead = 5 * time.Minute

	maxErrorText = 512 // bytes of an error in a log line: some of it may be a stranger's
)
