// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the few fields of the operator's Rds that the autopilot reads. An Rds also holds passwords:
// a field that is not here cannot be kept, logged or shown. It is plain data: it knows no client and no cloud.
//
// +kubebuilder:object:generate=true
// +groupName=otc.mcsps.de
package v1alpha1
