// SPDX-License-Identifier: Apache-2.0

// Package faults gives requests faults, for tests: those to the API server by a proxy, those to the simulated cloud by its hook.
// Both use the type simcloud.Fault. Most faults exist in two forms: before the request is applied, and after it, when only the
// answer is lost.
//
// Nth chooses one request ("the third patch rdsautopilots/status"). Random chooses requests at random, and repeats its choice for a
// seed.
//
// The package must not know the service under test. It sees requests and names them.
package faults
