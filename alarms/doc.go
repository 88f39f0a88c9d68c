// SPDX-License-Identifier: Apache-2.0

// Package alarms manages the source of alarms in the cloud: one SMN topic with a subscription of our URL for the
// installation, and Cloud Eye rules for each database. Each of them bears a mark that says whose it is. The package
// compares what is desired with what the cloud lists, creates what is missing, repairs changes by others, and removes
// what nobody wants any more. It touches nothing without our mark.
//
// Desired and recorded state are plain data of the API types. The package imports no Kubernetes client and does not
// know how an alarm is handled.
package alarms
