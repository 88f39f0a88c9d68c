// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// CreateForDoctor creates an RdsAutopilot that stands for no database.
func (c *Cluster) CreateForDoctor(ctx context.Context, namespace, name string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := c.autopilotsIn(namespace).Create(ctx, &autopilotv1.RdsAutopilot{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, Annotations: map[string]string{autopilotv1.DoctorAnnotation: "true"},
		},
		Spec: autopilotv1.Spec{Mode: autopilotv1.ModeOff},
	}, metav1.CreateOptions{FieldManager: self, FieldValidation: metav1.FieldValidationStrict})
	return wrapError(err, "create RdsAutopilot %s/%s", namespace, name)
}

// isDoctors reports whether doctor has created the RdsAutopilot. The leader would remove the topic from the status of
// any other object without a database, and the receiver would no longer know the topic. An object with our finalizer
// has alarms in the cloud, so the annotation alone does not hide it from the leader.
func isDoctors(a *autopilotv1.RdsAutopilot) bool {
	return a.Annotations[autopilotv1.DoctorAnnotation] == "true" && !slices.Contains(a.Finalizers, autopilotv1.Finalizer)
}
