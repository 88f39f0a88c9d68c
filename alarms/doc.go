// SPDX-License-Identifier: Apache-2.0

// Package alarms manages the source of alarms in the cloud. Each database has an SMN topic, a subscription of our URL
// to it, and a Cloud Eye rule per metric. The package creates each of them once, repairs changes by others, and
// removes them, also those of deleted databases. It touches nothing else of the tenant.
//
// Desired and recorded state are plain data of the API types. The package imports no Kubernetes client and does not
// know how an alarm is handled.
package alarms
