// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// trim drops the metadata that the service does not read. It lists the fields that stay, because kubectl copies the
// whole Rds into an annotation, passwords included, and other tools may copy it elsewhere.
func trim(m *metav1.ObjectMeta) {
	annotations := maps.Clone(m.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !strings.HasPrefix(key, autopilotv1.Group+"/") })
	if len(annotations) == 0 {
		annotations = nil
	}
	*m = metav1.ObjectMeta{
		Name:              m.Name,
		Namespace:         m.Namespace,
		UID:               m.UID,
		ResourceVersion:   m.ResourceVersion,
		Generation:        m.Generation,
		CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp,
		OwnerReferences:   m.OwnerReferences,
		Finalizers:        m.Finalizers,
		Annotations:       annotations,
	}
}

// transform trims an object before an informer stores it.
func transform(obj any) (any, error) {
	switch o := obj.(type) {
	case *otcv1.Rds:
		trim(&o.ObjectMeta)
	case *autopilotv1.RdsAutopilot:
		trim(&o.ObjectMeta)
	default:
		return nil, fmt.Errorf("unexpected object in a watch: %T", obj)
	}
	return obj, nil
}
