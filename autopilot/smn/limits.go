// SPDX-License-Identifier: Apache-2.0

package smn

import "time"

// Limits of certificates. A message beyond them is neither authentic nor forged: Keys returns ErrUnavailable, and the
// receiver answers 503. The receiver's own limits are in autopilot/webhook/limits.go.
const (
	// certLimit is the largest certificate file in bytes. SMN's has 2 KB.
	certLimit = 64 << 10
	// certFetchLimit ends a fetch early enough for the receiver to answer within 4 s.
	certFetchLimit = 3 * time.Second
	// keyLife is the time after which a certificate is fetched again, even if it is still within its dates.
	keyLife = 24 * time.Hour
	// keyRetry is the pause after a failed fetch, so that a flood of messages does not become a flood of requests.
	keyRetry = 30 * time.Second
	// maxFirst limits the messages whose URL has not signed a stored message. The receiver has more connections, so these
	// cannot take all of them.
	maxFirst = 256
	// firstHold is the time for which each message that waits for such a fetch holds its place, longer than
	// certFetchLimit. It bounds these fetches to 64 per second on average, however fast the host answers.
	firstHold = 4 * time.Second
	// minKeyBits is the shortest RSA key. Shorter keys can be broken.
	minKeyBits = 2048
	// maxKeyBits is the longest RSA key. Longer keys cost too much to verify.
	maxKeyBits = 8192
)

// Limits of a message. Beyond them it is malformed, and its alarm is unreadable.
const (
	// maxDepth is the depth of nesting. Cloud Eye's alarms have 3 levels.
	maxDepth = 8
	// maxSubject is in bytes. SMN allows 512 characters.
	maxSubject = 2048
	// maxDimensions is in bytes: four dimensions, each with a name and a value.
	maxDimensions = 4 * (32 + 1 + 256 + 1)
	// maxURL is in bytes.
	maxURL = 2048
	// maxSignature is in characters of base64, 1.5 times the signature of the longest key. A longer one is forged.
	maxSignature = maxKeyBits / 4
)
