// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	gojson "encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// Names in the Kubernetes API. The operator defines the plural.
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

// Rds holds the fields of a database that the autopilot reads. Never write it as a whole, because that would remove all
// other fields.
//
// +kubebuilder:object:root=true
type Rds struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec,omitzero"`
	Status            Status `json:"status,omitzero"`

	// Unreadable says which field has another type. The object has nothing but its metadata then.
	Unreadable string `json:"-"`
}

// UnmarshalJSON accepts fields of another type, which the definition of another operator may allow. Otherwise one such
// object would make all lists and watches fail.
func (r *Rds) UnmarshalJSON(text []byte) error {
	type plain Rds
	err := json.Unmarshal(text, (*plain)(r))
	if wrong, ok := errors.AsType[*gojson.UnmarshalTypeError](err); ok {
		*r = Rds{TypeMeta: r.TypeMeta, ObjectMeta: r.ObjectMeta, Unreadable: wrong.Field + " is a " + wrong.Value}
		return nil
	}
	return err
}

// RdsList is a list of Rds.
//
// +kubebuilder:object:root=true
type RdsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Rds `json:"items"`
}

// Spec holds what the operator applies to the cloud.
type Spec struct {
	// Autopilot turns autopilot on (true) or off (false). An absent field changes nothing.
	Autopilot *bool `json:"autopilot,omitempty"`
	// Endpoint turns on the operator's own, unauthenticated autopilot.
	Endpoint string `json:"endpoint,omitempty"`
	// FlavorRef is the flavor's code with the suffix of its mode.
	FlavorRef string `json:"flavorref,omitempty"`
	// VolumeSize is the size of the volume in GB.
	VolumeSize int32 `json:"volumesize,omitempty"`
}

// Status holds what the operator reports about the instance.
type Status struct {
	// ID is the id of the instance in the cloud.
	ID     string `json:"id,omitempty"`
	Status string `json:"status,omitempty"`
}
