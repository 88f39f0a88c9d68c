// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PublishReplicas writes the EndpointSlice of the chart's Service with these processes as its pods, as a cluster's controller
// would: none runs here. An empty namespace means the service's own.
func (w *World) PublishReplicas(ctx context.Context, namespace string, running ...*Process) error {
	endpoints := []any{}
	for _, p := range running {
		endpoints = append(endpoints, map[string]any{
			"addresses":  []any{fmt.Sprintf("10.0.0.%d", p.number%250+1)}, // it refuses the one that they really have
			"conditions": map[string]any{"ready": true},
			"targetRef":  map[string]any{"kind": "Pod", "name": p.Pod},
		})
	}
	slice := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
		"metadata": map[string]any{
			"name":   serviceName,
			"labels": map[string]any{"app.kubernetes.io/part-of": serviceName, "app.kubernetes.io/component": "webhook"},
		},
		"addressType": "IPv4", "endpoints": endpoints,
	}}
	slices := w.client.Resource(schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}).Namespace(cmp.Or(namespace, w.home))
	if _, err := slices.Apply(ctx, serviceName, slice, metav1.ApplyOptions{FieldManager: "world", Force: true}); err != nil {
		return fmt.Errorf("publish the replicas: %w", err)
	}
	return nil
}
