// SPDX-License-Identifier: Apache-2.0

// Package bubble is tests only: the real parts of the service with the simulated cloud and Kubernetes in memory, all on the
// clock of a bubble (testing/synctest). It stands still while anything is at work, so an hour of the cloud takes as long as
// there is something to do, on a slow machine as on a fast one.
//
// Decisions, arming, drift, an ill cloud, windows and kills belong here. What needs rights, schemas or processes belongs to
// the tests on a real API server (k8s, test/e2e).
package bubble
