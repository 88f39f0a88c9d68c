// SPDX-License-Identifier: Apache-2.0

// Package cloud adapts Open Telekom Cloud to the controller. It returns the domain's types, and it shares and batches
// readings, so that a storm of alarms costs the requests of one. It imports neither Kubernetes clients nor HTTP;
// internal/otc sends the requests.
package cloud
