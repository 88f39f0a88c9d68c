// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names in the Kubernetes API.
const (
	Group    = "autopilot.otc.mcsps.de"
	Version  = "v1alpha1"
	Kind     = "RdsAutopilot"
	Resource = "rdsautopilots"
)

// GroupVersion returns the group and version of this package's types.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &RdsAutopilot{}, &RdsAutopilotList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
