// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names that other systems see.
const (
	Group    = "autopilot.otc.mcsps.de"
	Version  = "v1alpha1"
	Kind     = "RdsAutopilot"
	Resource = "rdsautopilots"

	// Finalizer keeps an RdsAutopilot until what it made in the cloud is gone. It is never set on an Rds.
	Finalizer = "autopilot.otc.mcsps.de/alarms"

	// DoctorAnnotation set to "true" marks an RdsAutopilot that rds-autopilot doctor has made to see what the receiver makes of
	// real messages. It stands for no database, and the leader leaves it alone.
	DoctorAnnotation = "autopilot.otc.mcsps.de/doctor"

	// AbandonAnnotation set to "true" lets an RdsAutopilot go although the cloud cannot be reached to clean up.
	AbandonAnnotation = "autopilot.otc.mcsps.de/abandon"
)

// GroupVersion returns the group and version of this package's types.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &RdsAutopilot{}, &RdsAutopilotList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
