// SPDX-License-Identifier: Apache-2.0

// Package simkube is the Kubernetes API in memory. Tests use it on the clock of a bubble (testing/synctest), in which the
// network must not be used. The demo serves it on loopback, so that nobody has to compile an API server first.
//
// It has custom resources with their defaults and the status subresource, optimistic concurrency, JSON and merge patches,
// managed fields, finalizers, and watches that lag and expire. It checks no rights, drops unknown fields as its
// only check of values, and collects no garbage. It has no server-side apply and no label selectors. Its test compares its
// answers with those of a real API server.
//
// It must know nothing of the service under test.
package simkube
