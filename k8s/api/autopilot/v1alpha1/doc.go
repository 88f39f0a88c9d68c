// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the autopilot's own resource, RdsAutopilot: the policy a person writes, and the status in
// which everything is kept that must outlive a process. It is plain data: it knows no client and no cloud.
//
// +kubebuilder:object:generate=true
// +groupName=autopilot.otc.mcsps.de
package v1alpha1
