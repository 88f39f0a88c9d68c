// SPDX-License-Identifier: Apache-2.0

// Package k8s connects the service to the Kubernetes API. It has clients and caches for the operator's Rds and for
// RdsAutopilot, the few writes that the service makes, events, the leader's lease, and the hold of helm uninstall.
//
// It guarantees:
//
//   - It patches only spec.volumesize and spec.flavorref of an Rds, and only if the old value is the one that was
//     decided on.
//   - Receiver and leader write the status of the same RdsAutopilot. Neither writes the other's fields, and neither
//     overwrites a version that it has not read.
//   - It drops every field of an Rds that the Go type does not have, passwords above all, when it decodes an answer. It
//     drops foreign annotations as well, because kubectl copies the whole object into one.
//   - Every call has a deadline of its own, besides that of the caller.
//
// The package imports autopilot for the domain's types and errors, and implements the interfaces that controller and
// webhook declare. It must not know what a decision is, Cloud Eye, SMN or the cloud. It imports neither alarms nor
// internal/otc.
package k8s
