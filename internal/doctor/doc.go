// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out whether an installation can do its job. It reads what the service needs, and then rehearses
// with the running service: it creates an RdsAutopilot that only recommends, and waits for its alarm and its decision.
// It changes nothing in the cloud itself: the running service creates and removes topic, subscription and rules.
package doctor
