// SPDX-License-Identifier: Apache-2.0

// Package webhook receives what SMN posts: it verifies a message, finds the database it is about, stores the signal on
// that object, and only then acknowledges. It is reachable from the internet: checks.go has the table of all checks, the
// cheapest and strictest first.
//
// It must not know decisions or the cloud's APIs: with the cloud down it still stores and acknowledges.
package webhook
