// SPDX-License-Identifier: Apache-2.0

// Package webhook receives the messages of SMN. It verifies a message, finds its database, stores the signal on that
// object, and then acknowledges. It is reachable from the internet: checks.go has the table of all checks, the
// cheapest and strictest first.
//
// It does not use decisions or the cloud's APIs, so it stores and acknowledges even while the cloud is down.
package webhook
