// SPDX-License-Identifier: Apache-2.0

// Package simoperator is a stand-in for the archived RDS operator (eumel8/otc-rds-operator), for tests and the sandbox.
// It applies an Rds to the cloud as the archived operator was measured to do, with its faults:
//
//   - It works from a queue of snapshots. Every watch event and every resync adds a copy of the object. A snapshot that
//     fails is retried later, however old its spec is by then. So an old flavor can be applied again after a newer one.
//   - It acts only while the instance is ACTIVE. It applies flavors in both directions, and volumes only upwards.
//   - It updates the whole object from types of its own. The update drops fields that these types lack, such as
//     spec.autopilot.
//   - It finds an instance by its name, which is the name of the Rds.
//
// It must not know the service under test, nor share types with it.
package simoperator
