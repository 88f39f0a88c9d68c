// SPDX-License-Identifier: Apache-2.0

// Package app is the service as one value: New wires its parts, Run works until its context ends. The binary, the tests
// and the sandbox all use it, so that the wiring exists once. The package reads no flags and knows no exit codes, but
// its errors name the flag to set.
package app
