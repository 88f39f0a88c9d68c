// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names that other systems see. The plural is the operator's.
const (
	Group    = "otc.mcsps.de"
	Version  = "v1alpha1"
	Kind     = "Rds"
	Resource = "rdss"
)

// GroupVersion returns the group and version of this package's types.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &Rds{}, &RdsList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}

// Rds is a database, as far as the autopilot reads it. It is never written as a whole.
//
// +kubebuilder:object:root=true
type Rds struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec,omitzero"`
	Status            Status `json:"status,omitzero"`
}

// RdsList is a list of Rds.
//
// +kubebuilder:object:root=true
type RdsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Rds `json:"items"`
}

// Spec is what the operator applies to the cloud.
type Spec struct {
	// Autopilot turns autopilot on (true) or off (false); absent says nothing.
	Autopilot *bool `json:"autopilot,omitempty"`
	// AvailabilityZone is one zone, or two, comma separated.
	AvailabilityZone string `json:"availabilityzone,omitempty"`
	// DatastoreType is MySQL, PostgreSQL or SQLServer.
	DatastoreType    string `json:"datastoretype,omitempty"`
	DatastoreVersion string `json:"datastoreversion,omitempty"`
	// Endpoint set means that the operator's own, unauthenticated autopilot is on.
	Endpoint string `json:"endpoint,omitempty"`
	// FlavorRef is the flavor's code with the suffix of its mode.
	FlavorRef string `json:"flavorref,omitempty"`
	// VolumeSize in GB.
	VolumeSize int32  `json:"volumesize,omitempty"`
	VolumeType string `json:"volumetype,omitempty"`
}

// Status is what the operator says of the instance.
type Status struct {
	// ID of the instance in the cloud.
	ID     string `json:"id,omitempty"`
	Status string `json:"status,omitempty"`
}
