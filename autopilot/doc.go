// SPDX-License-Identifier: Apache-2.0

// Package autopilot is the domain: the policy, the evidence, and one pure function, Decide, that turns both into
// decisions with reasons. Time is an argument; the package has no I/O and no state.
//
// Data flows one way: message → signal → decision → intent → patch → outcome. This package covers decision, intent and
// outcome. It must not import HTTP, Kubernetes clients or the cloud's APIs.
//
// Start with Decide in decide.go. FollowUp and RecordOutcome update the status before and after it.
package autopilot
