// SPDX-License-Identifier: Apache-2.0

// Package otc is the client of Open Telekom Cloud's RDS, Cloud Eye (CES) and SMN. It uses the vendor's SDK, and one
// HTTP transport that works around the SDK's faults: no context, no deadline, endless retries, leaking replies.
//
// The package returns the domain's types. All databases share its lists, and its requests for datapoints, so that a
// storm of alarms costs as many requests as one alarm. It does not know Kubernetes clients or the policy.
package otc
