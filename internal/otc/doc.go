// SPDX-License-Identifier: Apache-2.0

// Package otc is the cloud: Open Telekom Cloud's RDS, Cloud Eye (CES) and SMN through the vendor's SDK, and one HTTP
// transport that mends what the SDK gets wrong (no context, no deadline, endless repeats, leaking replies).
//
// It knows how to authenticate, to page, to repeat what may be repeated and to name what went wrong. It must not know
// Kubernetes, the policy, or why anybody asks.
package otc
