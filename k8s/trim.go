// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/shorten"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// Limits of what the caches keep of one object. An object may have 1.5 MB, and whoever may write one namespace must not
// be able to end the process by its memory.
const (
	// maxID is longer than any id or flavor of the cloud. The schema of the Rds has no limit, and messages contain them.
	maxID = 128
	// maxName is the longest name of an object.
	maxName = 253
	// maxFinalizers is more than tools set. Each has at most 317 bytes.
	maxFinalizers = 16
)

// trim drops the metadata that the service does not read. It lists the fields that stay, because kubectl copies the
// whole Rds into an annotation, passwords included, and other tools may copy it elsewhere.
func trim(m *metav1.ObjectMeta) {
	was := m.Annotations
	*m = metav1.ObjectMeta{
		Name:              m.Name,
		Namespace:         m.Namespace,
		UID:               m.UID,
		ResourceVersion:   m.ResourceVersion,
		Generation:        m.Generation,
		CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp,
	}
	if was[autopilotv1.AbandonAnnotation] == "true" {
		metav1.SetMetaDataAnnotation(m, autopilotv1.AbandonAnnotation, "true")
	}
}

// trimRds keeps what TargetOf reads.
func trimRds(rds *otcv1.Rds) {
	trim(&rds.ObjectMeta)
	rds.Spec = otcv1.Spec{
		Autopilot: rds.Spec.Autopilot, VolumeSize: rds.Spec.VolumeSize,
		Endpoint: shorten.To(rds.Spec.Endpoint, maxID), FlavorRef: shorten.To(rds.Spec.FlavorRef, maxID),
	}
	rds.Status = otcv1.Status{ID: shorten.To(rds.Status.ID, maxID)}
}

// trimAutopilot keeps the owner and up to maxFinalizers finalizers, among them ours. The schema limits the spec, and
// only the service may write the status.
func trimAutopilot(a *autopilotv1.RdsAutopilot) {
	finalizers, owner := a.Finalizers, autopilot.Owner(a)
	trim(&a.ObjectMeta)
	if a.Finalizers = finalizers; len(finalizers) > maxFinalizers {
		a.Finalizers = slices.Clone(finalizers[:maxFinalizers])
		if slices.Contains(finalizers, autopilotv1.Finalizer) {
			a.Finalizers[0] = autopilotv1.Finalizer
		}
	}
	if owner != nil {
		owner.APIVersion, owner.Name = shorten.To(owner.APIVersion, maxID), shorten.To(owner.Name, maxName)
		owner.UID = types.UID(shorten.To(string(owner.UID), maxID))
		a.OwnerReferences = []metav1.OwnerReference{*owner}
	}
}

// transform trims an object where it enters the process.
func transform(obj any) (any, error) {
	switch o := obj.(type) {
	case *otcv1.Rds:
		trimRds(o)
	case *autopilotv1.RdsAutopilot:
		trimAutopilot(o)
	default:
		return nil, fmt.Errorf("unexpected object in a watch: %T", obj)
	}
	return obj, nil
}
