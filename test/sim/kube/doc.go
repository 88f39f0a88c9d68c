// SPDX-License-Identifier: Apache-2.0

// Package simkube is the Kubernetes API in memory. Tests use it on the clock of a bubble (testing/synctest), where the network
// must not be used. The demo serves it on loopback, so that nobody has to compile an API server first.
//
// It has custom resources with their defaults and the status subresource, optimistic concurrency, JSON and merge patches,
// server-side apply, managed fields, finalizers, discovery, and watches that lag, break and expire. It does not check rights,
// it checks values only by dropping unknown fields, and it collects no garbage. Its tests run against a real API server as
// well, so that it does not drift.
//
// It must know nothing of the service under test.
package simkube
