// SPDX-License-Identifier: Apache-2.0

// Package simkube is the Kubernetes API in memory, over HTTP, for tests on the clock of a bubble (testing/synctest), which
// must not use the network: custom resources with their defaults and the status subresource, optimistic concurrency, JSON and
// merge patches, server-side apply, managed fields, finalizers, and watches that are behind, break and expire.
//
// It does not check rights, nor values against a schema beyond dropping unknown fields, and it collects no garbage. Its tests
// run against a real API server as well, so that it does not drift.
//
// It must know nothing of the service under test.
package simkube
