// SPDX-License-Identifier: Apache-2.0

package smn

import "time"

// Limits of what is fetched, kept and believed. Beyond the limits of certificates nothing is known of a message
// (ErrUnavailable, which the receiver answers 503). The receiver's own limits are in autopilot/webhook/limits.go.
const (
	certLimit       = 64 << 10         // bytes; a certificate has 2 KB
	certFetchLimit  = 3 * time.Second  // for all of a fetch: the receiver answers within 4 s
	keysKept        = 128              // URLs, 4 KB each. SMN uses one or two at a time; those without a good certificate go first
	keyLife         = 24 * time.Hour   // then it is fetched anew, or at its NotAfter if that is sooner
	keyRetry        = 30 * time.Second // after a failure
	maxFirstFetches = 64               // fetches of URLs that have not signed for us before, at a time and in each …
	firstFetchTime  = time.Second      // … of these; half of them for one topic
	maxFirstWaiters = 448              // messages that wait for those; the receiver works on more
	minKeyBits      = 2048             // of RSA; fewer can be broken
	maxKeyBits      = 8192             // more cost too much to check

	maxDepth      = 8                      // of nesting; Cloud Eye's alarms have 3 → malformed, unreadable
	maxSubject    = 2048                   // bytes; SMN allows 512 characters → malformed
	maxDimensions = 4 * (32 + 1 + 256 + 1) // bytes: four at most, each a name and a value → unreadable
	maxURL        = 2048                   // bytes → malformed
	maxSignature  = maxKeyBits / 4         // characters of base64, generously → ErrForged
)
