// SPDX-License-Identifier: Apache-2.0

// Package chaos tests that no alarm is lost and no change is made twice. It runs real processes of the service in a world of
// their own (test/world), kills them, disconnects them and gives them wrong answers. An oracle compares each step, and the
// final state, with what the recorded loads and messages allow.
//
// The package holds only tests. The oracle must not call the service's code: it computes sizes and thresholds from the
// contract.
package chaos
