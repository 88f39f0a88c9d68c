// SPDX-License-Identifier: Apache-2.0

// Package chaos tries to break the promise that nothing is lost and nothing is done twice: real processes of the service
// in a world of their own (test/world), killed, cut off and lied to, and an oracle that compares what is there in the
// end, and each step on the way, with what the history allows.
//
// It is tests and nothing else. It must not ask the service's own code what is right: sizes and thresholds are computed
// here once more, from the design.
package chaos
