// SPDX-License-Identifier: Apache-2.0

// Package autopilot is the vocabulary of the domain: metrics and reasons, the policy, the case and its facts,
// decisions, sizes and thresholds, and how far a change has come. It is plain data and arithmetic. Time is an argument;
// the package has no I/O and no state.
//
// Data flows one way: message → signal → decision → intent → patch → outcome. The rooms below this package do the work:
// decide walks through the guards, record keeps what follows, plan shows the same walk as a dry run, and controller is
// the loop around them. This package must not import any of them, nor HTTP, Kubernetes clients or the cloud's APIs.
//
// Start with Case in case.go, and then read the table of guards in decide/guards.go.
package autopilot
