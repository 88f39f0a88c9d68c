// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// mailbox is an RdsAutopilot without a database. A receiver stores the results of the messages in it.
type mailbox interface {
	// expect sets topic, rule and instance, by which the receiver recognizes the messages.
	expect(ctx context.Context, s v1alpha1.Status) error
	captured(ctx context.Context) ([]v1alpha1.CapturedMessage, error)
}

// kubeMailbox is the mailbox of the running service.
type kubeMailbox struct {
	kube            *cluster
	namespace, name string
}

func openMailbox(ctx context.Context, kube *cluster, namespace, name string) (mailbox, error) {
	m := &kubeMailbox{kube, namespace, v1alpha1.DoctorName + name}
	_, err := kube.autopilots(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.Kind,
		"metadata": map[string]any{"name": m.name, "annotations": map[string]any{v1alpha1.DoctorAnnotation: "true"}},
		"spec":     map[string]any{"mode": string(v1alpha1.ModeOff)},
	}}, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return nil, fmt.Errorf("create RdsAutopilot %s/%s: %w", namespace, m.name, err)
	}
	return m, nil
}

func (m *kubeMailbox) expect(ctx context.Context, s v1alpha1.Status) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"alarms": s.Alarms, "instance": s.Instance}})
	if err != nil {
		return err
	}
	_, err = m.kube.autopilots(m.namespace).Patch(ctx, m.name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, "status")
	if err != nil {
		return fmt.Errorf("patch the status of RdsAutopilot %s/%s: %w", m.namespace, m.name, err)
	}
	return nil
}

func (m *kubeMailbox) captured(ctx context.Context) ([]v1alpha1.CapturedMessage, error) {
	u, err := m.kube.autopilots(m.namespace).Get(ctx, m.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get RdsAutopilot %s/%s: %w", m.namespace, m.name, err)
	}
	a := &v1alpha1.RdsAutopilot{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, a); err != nil {
		return nil, err
	}
	return slices.Clone(a.Status.Intake.Captured), nil
}
