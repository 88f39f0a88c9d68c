package webhook

import "time"

// Limits of the receiver, each with the status that a sender sees beyond it. SMN gives up after 5 s and sends again
// only what was answered 5xx (otc-facts a.6); so nothing is answered later than 4 s, and never 429. There is none per
// source address: SMN's are not fixed, and behind an ingress all are one. What a certificate may cost, and the depth
// and lengths within a message, are in autopilot/smn/limits.go.
const (
	// MaxBody in bytes → 413. A message is at most 256 KB; escaping doubles it.
	MaxBody = 1 << 20

	connections = 1024             // open ones; beyond it the one that waits longest for a whole request is cut. some 35 KB each
	maxHeader   = 32 << 10         // bytes → 431 by net/http. SMN's headers are under 1 KB
	readTime    = 3 * time.Second  // for headers and body → 503: a slow body may be an honest one. Headers alone: cut
	writeTime   = 6 * time.Second  // since the headers; an answer fits one packet, so only who takes nothing is cut
	idleTime    = 90 * time.Second // a connection without a request is closed; later than a proxy gives it up (nginx: 60 s), which else sends on it just then

	answerTime = 3500 * time.Millisecond // for everything, the API server included → 503
	graceTime  = 250 * time.Millisecond  // for work to say why it was cut; then the answer goes without its word

	smallBody  = 8 << 10                 // bytes; alarms have 2–4 KB. A larger body needs one of …
	largeSlots = 16                      // … so many, because it costs five times its size in memory; where there is none, who stalls longest is cut, then → 503
	inFlight   = 768                     // messages being worked on, waits included; who still sends its body has none → 503
	slotWait   = 1500 * time.Millisecond // for either of these: who is refused comes back after a minute, so a storm had better wait
	retryAfter = 5                       // seconds, up to twice that: refused senders should not come back together

	confirming  = 32              // confirmation links called at a time; the others wait → 503
	confirmTime = 2 * time.Second // for one of them → 503
	looksPerSec = 100             // at the API server, for topics that the cache lacks, and as many for rules of authentic alarms; the others wait → 503
	looking     = 160             // messages that wait for either → 503. With those that wait for certificates they are fewer than inFlight

	// MaxAhead of our clock may a message be → 403; the alarm in it is unreadable beyond that.
	MaxAhead = 5 * time.Minute

	maxWhy = 512 // bytes of a reason in a log line: some of it may be a stranger's
)
