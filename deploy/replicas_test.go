// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s"
)

// An EndpointSlice has the labels of its Service; nobody but the test makes any here.
func TestReplicasFindsOnlyThePodsOfTheWebhookService(t *testing.T) {
	config := service(t)
	slices := clientset(t, shared.Cluster(t).Config()).DiscoveryV1().EndpointSlices(own)
	for _, name := range []string{own, own + "-admin"} {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: find(t, "Service", name).GetLabels()}, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "pod-of-" + name}}},
		}
		if _, err := slices.Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := slices.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	cluster, err := k8s.Connect(t.Context(), config, k8s.Options{Version: "test", Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	got, err := cluster.Replicas(t.Context(), own)
	if err != nil || len(got) != 1 || got[0].Pod != "pod-of-"+own {
		t.Errorf("%+v, %v; want the pod behind the webhook's Service alone", got, err)
	}
}
