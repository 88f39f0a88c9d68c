// SPDX-License-Identifier: Apache-2.0

// Package alarms makes the alarms come: for one database an SMN topic, a subscription of our own URL to it, and a Cloud Eye
// rule per metric. It ensures that they exist once and stay as they should be, and removes them, also those of databases
// that are no more, without touching anything else of the tenant.
//
// What is desired and what is recorded are the plain data of the API types. It must not know a Kubernetes client, nor what
// is done about an alarm.
package alarms
