// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/internal/shorten"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// maxID is longer than any id or flavor of the cloud. The schema of the Rds has no limit, and whoever may write one
// namespace must not be able to end the process by its memory.
const maxID = 128

// trim drops the metadata that the service does not read. It lists the fields that stay, because kubectl copies the
// whole Rds into an annotation, passwords included, and other tools may copy it elsewhere.
func trim(m *metav1.ObjectMeta) {
	*m = metav1.ObjectMeta{
		Name:              m.Name,
		Namespace:         m.Namespace,
		UID:               m.UID,
		ResourceVersion:   m.ResourceVersion,
		Generation:        m.Generation,
		CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp,
	}
}

func trimRds(rds *otcv1.Rds) {
	trim(&rds.ObjectMeta)
	rds.Spec.Endpoint, rds.Spec.FlavorRef = shorten.To(rds.Spec.Endpoint, maxID), shorten.To(rds.Spec.FlavorRef, maxID)
	rds.Unreadable = shorten.To(rds.Unreadable, maxID)
	rds.Status = otcv1.Status{ID: shorten.To(rds.Status.ID, maxID)}
}

// trimAutopilot keeps spec and status: the schema limits the spec, and only the service may write the status. The owner
// shows whether a deleted object was garbage of a former Rds.
func trimAutopilot(a *autopilotv1.RdsAutopilot) {
	owners := a.OwnerReferences
	trim(&a.ObjectMeta)
	for _, o := range owners {
		if o.Kind == otcv1.Kind {
			a.OwnerReferences = []metav1.OwnerReference{{Kind: o.Kind, UID: o.UID}}
		}
	}
}

func transform(obj any) (any, error) {
	switch o := obj.(type) {
	case *otcv1.Rds:
		trimRds(o)
	case *autopilotv1.RdsAutopilot:
		trimAutopilot(o)
	case *corev1.ConfigMap: // that of the topic
		trim(&o.ObjectMeta)
	default:
		return nil, fmt.Errorf("unexpected object in a watch: %T", obj)
	}
	return obj, nil
}
