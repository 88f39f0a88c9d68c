// SPDX-License-Identifier: Apache-2.0

// Package controller is the leader's loop. A round handles one database: it observes the cloud, lets the domain
// decide, stores the intent, patches the Rds and stores the outcome. A second queue creates and removes the alarm
// rules. A sweep checks every database at an interval, so that an alarm is acted on even if its message is lost.
//
// The package must not import HTTP, Kubernetes clients or the cloud's SDK. ports.go declares what it needs from them.
package controller
