// SPDX-License-Identifier: Apache-2.0

// Package autopilot is the domain: what a policy allows, what counts as evidence, and the one pure function that turns
// both into a decision with a reason. Time is an argument; there is no I/O and no state.
//
// The data's way is one: message → signal → decision → intent → patch → outcome. This package is the middle of it.
// It must not know HTTP, Kubernetes clients or the cloud's APIs: no adapter is imported here.
package autopilot
