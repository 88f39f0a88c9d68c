// SPDX-License-Identifier: Apache-2.0

// Package controller is the loop of the leader. For one database at a time it loads what is known, lets the domain
// decide, records the intent, patches the Rds and records the outcome; it arms and disarms; and it sweeps, so that an
// alarm is acted on even if no message ever comes.
//
// It must not know HTTP, Kubernetes clients or the cloud's SDK: what it needs of them it declares as interfaces.
package controller
