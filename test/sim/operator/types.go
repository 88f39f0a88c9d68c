// SPDX-License-Identifier: Apache-2.0

package simoperator

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rds has exactly the fields that the archived operator knows. Reading and writing an object drops all others.
type Rds struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status"`
}

// Spec has the fields of the operator's own definition. Empty optional fields are left out, never null.
type Spec struct {
	AvailabilityZone  string   `json:"availabilityzone"`
	BackupRestoreTime string   `json:"backuprestoretime,omitempty"`
	BackupStartTime   string   `json:"backupstarttime"`
	BackupKeepDays    int      `json:"backupkeepdays"`
	Databases         []string `json:"databases,omitempty"`
	DatastoreType     string   `json:"datastoretype"`
	DatastoreVersion  string   `json:"datastoreversion"`
	Endpoint          string   `json:"endpoint,omitempty"`
	FlavorRef         string   `json:"flavorref"`
	HAMode            string   `json:"hamode,omitempty"`
	HAReplicationMode string   `json:"hareplicationmode,omitempty"`
	Port              string   `json:"port"`
	Password          string   `json:"password,omitempty"`
	Region            string   `json:"region"`
	Subnet            string   `json:"subnet"`
	SecurityGroup     string   `json:"securitygroup"`
	Users             []User   `json:"users,omitempty"`
	VolumeType        string   `json:"volumetype"`
	VolumeSize        int      `json:"volumesize"` // GB
	VPC               string   `json:"vpc"`
}

// User is a user of the database.
type User struct {
	Name       string   `json:"name,omitempty"`
	Host       string   `json:"host,omitempty"`
	Password   string   `json:"password,omitempty"`
	Privileges []string `json:"privileges,omitempty"`
}

// Status is no subresource, so it is written together with the spec.
type Status struct {
	Autopilot bool   `json:"autopilot"`
	ID        string `json:"id,omitempty"`
	IP        string `json:"ip,omitempty"`
	Logs      bool   `json:"logs"`
	Reboot    bool   `json:"reboot"`
	Status    string `json:"status,omitempty"`
}

// Resource returns the resource of Rds objects.
func Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "otc.mcsps.de", Version: "v1alpha1", Resource: "rdss"}
}

// snapshot returns a copy of an object in the operator's own type.
func snapshot(u *unstructured.Unstructured) (*Rds, error) {
	rds := &Rds{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, rds); err != nil {
		return nil, fmt.Errorf("decode Rds %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	return rds, nil
}

func (r *Rds) unstructured() (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	if err != nil {
		return nil, fmt.Errorf("encode Rds %s/%s: %w", r.Namespace, r.Name, err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}
