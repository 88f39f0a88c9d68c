package webhook

import "time"

// Limits of the receiver, each with the status that a sender sees beyond it. SMN gives up after 5 s and sends again
// only what was answered 5xx (otc-facts a.6); so nothing is answered later than 4 s, and never 429.
const (
	// MaxBody in bytes → 413. A message is at most 256 KB; escaping doubles it.
	MaxBody = 1 << 20

	connections = 1024     // open ones; beyond it the one that waits longest for a whole request is cut. 20–30 KB each
	maxHeader   = 32 << 10 // bytes → 431 by net/http. SMN's headers are under 1 KB
	headerTime  = 3 * time.Second
	bodyTime    = 3 * time.Second         // from the first byte of the request → 503: a slow body may be an honest one
	answerTime  = 3500 * time.Millisecond // for everything, the API server included → 503
	idleTime    = 60 * time.Second        // a connection without a request is closed

	inFlight     = 64 // requests at a time; further ones wait …
	inFlightWait = 250 * time.Millisecond
	retryAfter   = 5 // seconds, up to twice that: refused senders should not come back together

	confirming    = 4               // confirmation links fetched at a time → 503
	confirmTime   = 2 * time.Second // for one of them
	liveLookups   = 5               // a second, for topics and rules that the cache lacks → 503
	liveLookBurst = 10
)
