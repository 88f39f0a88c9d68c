// SPDX-License-Identifier: Apache-2.0

// Package app is the service as one value: New puts its parts together, Run works until the context ends. The binary, the
// tests and the sandbox use it, so that nothing is wired twice. It reads no flag and knows no exit code; its errors name the flag that helps.
package app
