// SPDX-License-Identifier: Apache-2.0

// Package bubble is tests only: the real parts of the service, with the simulated cloud and Kubernetes in memory, in
// a bubble of testing/synctest. The clock of a bubble advances only while all goroutines wait, so a simulated hour
// takes as long as its work, and a slow machine changes no result.
//
// Short stories (faults_*) meet every fault at every call. The swarm (swarm_*) runs whole months and judges them by the
// contract: budgets, windows, clocks and fleets. The other tests show what these cannot judge: reports to people, counts of
// calls, and doctor. Tests that need rights, schemas or processes belong to a real API server (k8s, test/e2e).
package bubble
