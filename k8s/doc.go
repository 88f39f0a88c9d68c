// SPDX-License-Identifier: Apache-2.0

// Package k8s is the room with the door to the Kubernetes API: clients for the operator's Rds and for the
// RdsAutopilot, caches that keep only what is needed, the few writes the autopilot is allowed, events, and the leader's
// lease.
//
// What it promises to the rest of the program:
//
//   - An Rds is only ever patched in spec.volumesize and spec.flavorref, and only from the value it was decided on.
//   - The two writers of an RdsAutopilot's status, webhook and leader, cannot write each other's fields, and neither
//     overwrites what it has not read.
//   - What an Rds holds besides the fields of its Go type, passwords above all, is gone once an answer is decoded:
//     annotations too, because kubectl keeps a copy of the whole object in one.
//   - Every call ends: reads and writes have a deadline of their own besides the caller's.
//
// It must not know: what a decision is, Cloud Eye, SMN, the cloud, or any metric. It imports neither autopilot nor alarms
// nor internal/otc; they declare the interfaces they need and a Cluster happens to have the methods.
package k8s
