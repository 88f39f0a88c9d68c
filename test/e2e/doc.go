// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the tests of the real binary from outside: a process of its own, on a real API server and a simulated
// cloud, with the rights that we ship. It has nothing but tests.
package e2e
