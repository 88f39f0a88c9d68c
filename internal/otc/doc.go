// SPDX-License-Identifier: Apache-2.0

// Package otc is the client of Open Telekom Cloud's RDS, Cloud Eye (CES) and SMN. It uses the vendor's SDK, and one
// HTTP transport that works around the SDK's faults: no context, no deadline, endless retries, leaking replies.
//
// The package authenticates, reads pages, retries and classifies errors. It does not know Kubernetes or the policy.
package otc
