// SPDX-License-Identifier: Apache-2.0

// Package acceptance is tests only. It runs the acceptance tests of the SDK for SMN, Cloud Eye and RDS against the
// simulated cloud. Their authors run them in the real cloud. They come unchanged from the module that go.mod pins, and
// test/tools/acceptance has their own dependencies. A disagreement is a fault of the simulation, unless the manuals of
// the cloud contradict the test. docs/development.md has the results.
package acceptance
