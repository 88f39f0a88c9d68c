// SPDX-License-Identifier: Apache-2.0

// Package simoperator is a fake of the archived RDS operator (eumel8/otc-rds-operator), for tests and the sandbox: it
// applies an Rds to the cloud as that one was measured to, its unpleasant habits included.
//
//   - It works from a queue of snapshots: every watch event and every resync puts a copy of the object there, and what
//     fails is tried again later with that copy, however old its spec is by then.
//     So after a backup, or whatever else kept the instance from being ACTIVE, old flavors can be applied again after a
//     newer one: seven resizes, back and forth, were seen, while the Rds had the new flavor all the while. That takes bad
//     luck; Operator.Replay makes sure of it.
//   - It acts only while the instance is ACTIVE. Flavors are applied in both directions, volumes only upwards.
//   - It writes the whole object back by plain update, from types of its own. What they do not know is dropped:
//     spec.autopilot, for one.
//   - It finds an instance by its name, which is the name of the Rds.
//
// It must not know the service under test, nor share types with it.
package simoperator
