// SPDX-License-Identifier: Apache-2.0

// Package change is the life of a change: its states, the one table that moves it from state to state, and the questions
// about the list of changes. It is pure. It must not know why a change is made, how it is requested, or what the cloud and
// Kubernetes look like: callers translate what they see into Seen.
package change
