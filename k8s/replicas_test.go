// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mcsps/rds-autopilot/k8s"
)

func endpoint(pod, address string, ready, terminating *bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ready, Terminating: terminating}}
	if pod != "" {
		e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: pod}
	}
	return e
}

// Nobody makes EndpointSlices here: the test does, with the labels that they get from the chart's Services.
func TestReplicasAreThoseOfOurService(t *testing.T) {
	client, err := kubernetes.NewForConfig(shared.Cluster(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	namespace := ownNamespace(t)
	c := connect(t)
	if got, err := c.Replicas(t.Context(), namespace); err != nil || len(got) > 0 {
		t.Errorf("before there is one: %v, %v", got, err)
	}
	for _, s := range []struct {
		name, component string
		addressType     discoveryv1.AddressType
		endpoints       []discoveryv1.Endpoint
	}{
		{"v4", "webhook", discoveryv1.AddressTypeIPv4, []discoveryv1.Endpoint{
			endpoint("pod-b", "10.0.0.2", new(false), new(true)), endpoint("pod-a", "10.0.0.1", new(true), nil),
			endpoint("pod-c", "10.0.0.3", nil, nil), endpoint("", "10.0.0.4", new(false), nil),
		}},
		{"v6", "webhook", discoveryv1.AddressTypeIPv6, []discoveryv1.Endpoint{endpoint("pod-a", "fd00::1", new(false), nil)}},
		{"admin", "admin", discoveryv1.AddressTypeIPv4, []discoveryv1.Endpoint{endpoint("pod-z", "10.0.0.9", new(true), nil)}},
	} {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: s.name, Labels: map[string]string{"app.kubernetes.io/part-of": "rds-autopilot", "app.kubernetes.io/component": s.component}},
			AddressType: s.addressType, Endpoints: s.endpoints,
		}
		if _, err := client.DiscoveryV1().EndpointSlices(namespace).Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.Replicas(t.Context(), namespace)
	want := []k8s.Replica{
		{Addresses: []string{"10.0.0.4"}},
		{Pod: "pod-a", Addresses: []string{"10.0.0.1", "fd00::1"}},
		{Pod: "pod-b", Addresses: []string{"10.0.0.2"}, Stopping: true},
		{Pod: "pod-c", Addresses: []string{"10.0.0.3"}, Ready: true},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := c.Replicas(t.Context(), "kube-system"); err == nil {
		t.Error("those of another namespace may be read")
	}
}
