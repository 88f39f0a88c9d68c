// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownService selects the EndpointSlices of the Service that receives the messages. EndpointSlices have the labels of
// their Service.
const ownService = "app.kubernetes.io/part-of=" + self + ",app.kubernetes.io/component=webhook"

// Replica is a pod of this service.
type Replica struct {
	Pod       string // empty if Kubernetes knows no pod with the address
	Addresses []string
	Ready     bool // receives messages
	Stopping  bool
}

// Replicas returns the pods behind our Service, ready or not, sorted by name. It asks the API server. An empty
// namespace means the pod's own.
func (c *Cluster) Replicas(ctx context.Context, namespace string) ([]Replica, error) {
	namespace, err := LeaseNamespace(namespace)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := c.discovery.EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: ownService})
	if err != nil {
		return nil, fmt.Errorf("list the EndpointSlices of our Service in %s: %w", namespace, err)
	}
	var all []Replica
	for _, slice := range list.Items { // there are several with IPv4 and IPv6, or with many pods
		for _, e := range slice.Endpoints {
			all = addReplica(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Replica) int {
		return cmp.Or(strings.Compare(a.Pod, b.Pod), slices.Compare(a.Addresses, b.Addresses))
	})
	return all, nil
}

func addReplica(all []Replica, e discoveryv1.Endpoint) []Replica {
	is := func(condition *bool, unknown bool) bool {
		return condition == nil && unknown || condition != nil && *condition
	}
	r := Replica{Addresses: e.Addresses, Ready: is(e.Conditions.Ready, true),
		Stopping: is(e.Conditions.Terminating, false)}
	if e.TargetRef != nil {
		r.Pod = e.TargetRef.Name
	}
	if i := slices.IndexFunc(all, func(o Replica) bool { return o.Pod == r.Pod && r.Pod != "" }); i >= 0 {
		all[i].Addresses = append(all[i].Addresses, r.Addresses...)
		all[i].Ready, all[i].Stopping = all[i].Ready && r.Ready, all[i].Stopping || r.Stopping
		return all
	}
	return append(all, r)
}
