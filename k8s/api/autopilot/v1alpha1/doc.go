// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 defines the autopilot's own resource, RdsAutopilot. A person writes its spec, the policy. The
// autopilot stores in its status everything that must survive a restart. The package is plain data and knows no client
// and no cloud.
//
// +kubebuilder:object:generate=true
// +groupName=autopilot.otc.mcsps.de
package v1alpha1
