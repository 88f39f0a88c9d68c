// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/internal/kubetest"
)

const own = "rds-autopilot" // namespace, ServiceAccount and lease

// service returns access as the ServiceAccount of rbac.yaml, once both bindings are in force.
func service(t *testing.T) *rest.Config {
	t.Helper()
	cluster := shared.Cluster(t)
	if _, err := cluster.Apply(t.Context(), kubetest.ApplyOptions{}, "namespace.yaml", "rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	config, err := cluster.ServiceAccountConfig(t.Context(), own, own)
	if err != nil {
		t.Fatal(err)
	}
	inForce(t, func() bool {
		got := rights(t, config, own)
		return got["patch otc.mcsps.de/rdss"] && got["create coordination.k8s.io/leases"]
	})
	return config
}

// inForce waits until the API server knows a right that was granted.
func inForce(t *testing.T, known func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !known() {
		select {
		case <-ctx.Done():
			t.Fatal("what was granted is not in force")
		case <-tick.C:
		}
	}
}

func clientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// rights are those that the API server lists for a config in a namespace, as "verb group/resource name".
func rights(t *testing.T, config *rest.Config, namespace string) map[string]bool {
	t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	answer, err := clientset(t, config).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if answer.Status.Incomplete {
		t.Fatalf("incomplete: %s", answer.Status.EvaluationError)
	}
	set := map[string]bool{}
	for _, rule := range answer.Status.ResourceRules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						set[strings.TrimSpace(verb+" "+group+"/"+resource+" "+name)] = true
					}
				}
			}
		}
	}
	return set
}

func TestTheServiceHasTheseRightsAndNoOthers(t *testing.T) {
	config := service(t)
	nobody, err := shared.Cluster(t).ServiceAccountConfig(t.Context(), own, "nobody")
	if err != nil {
		t.Fatal(err)
	}
	everywhere := []string{
		"get otc.mcsps.de/rdss", "list otc.mcsps.de/rdss", "watch otc.mcsps.de/rdss", "patch otc.mcsps.de/rdss",
		"get autopilot.otc.mcsps.de/rdsautopilots", "list autopilot.otc.mcsps.de/rdsautopilots", "watch autopilot.otc.mcsps.de/rdsautopilots",
		"create autopilot.otc.mcsps.de/rdsautopilots", "patch autopilot.otc.mcsps.de/rdsautopilots", "delete autopilot.otc.mcsps.de/rdsautopilots",
		"patch autopilot.otc.mcsps.de/rdsautopilots/status", "create events.k8s.io/events", "patch events.k8s.io/events",
		"get /namespaces kube-system",
	}
	local := []string{
		"list discovery.k8s.io/endpointslices",
		"create coordination.k8s.io/leases",
		"get coordination.k8s.io/leases rds-autopilot", "update coordination.k8s.io/leases rds-autopilot",
	}
	for namespace, want := range map[string][]string{"default": everywhere, own: slices.Concat(everywhere, local)} {
		t.Run("in "+namespace, func(t *testing.T) {
			got := rights(t, config, namespace)
			for right := range rights(t, nobody, namespace) {
				delete(got, right) // what everybody has
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheServiceCanDoItsWorkAndNothingElse makes the requests themselves.
func TestTheServiceCanDoItsWorkAndNothingElse(t *testing.T) {
	config := service(t)
	namespace := shared.Cluster(t).Namespace(t)
	for kind, gvr := range map[string]schema.GroupVersionResource{"Rds": rdss, "RdsAutopilot": rdsautopilots} {
		if _, err := admin(t).Resource(gvr).Namespace(namespace).Create(t.Context(), newObject(t, gvr, kind, `{}`), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	databases, policies := dyn.Resource(rdss).Namespace(namespace), dyn.Resource(rdsautopilots).Namespace(namespace)
	client := clientset(t, config)
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	ctx := t.Context()
	t.Cleanup(func() {
		leases := clientset(t, shared.Cluster(t).Config()).CoordinationV1().Leases(own)
		if err := leases.Delete(context.WithoutCancel(ctx), own, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})

	cases := []struct {
		name    string
		allowed bool
		do      func() error
	}{
		{"grow a volume by JSON patch with a test", true, func() error {
			patch := []byte(`[{"op":"test","path":"/spec/volumesize","value":40},{"op":"replace","path":"/spec/volumesize","value":50}]`)
			_, err := databases.Patch(ctx, "x", "application/json-patch+json", patch, metav1.PatchOptions{FieldManager: "rds-autopilot"})
			return err
		}},
		{"update an Rds as a whole", false, func() error {
			object, err := databases.Get(ctx, "x", metav1.GetOptions{})
			if err != nil {
				return err
			}
			_, err = databases.Update(ctx, object, metav1.UpdateOptions{})
			return err
		}},
		{"delete an Rds", false, func() error { return databases.Delete(ctx, "x", metav1.DeleteOptions{}) }},
		{"create an Rds", false, func() error {
			_, err := databases.Create(ctx, newObject(t, rdss, "Rds", `{}`), metav1.CreateOptions{})
			return err
		}},
		{"set the finalizer", true, func() error {
			patch := []byte(`{"metadata":{"finalizers":["autopilot.otc.mcsps.de/alarms"]}}`)
			_, err := policies.Patch(ctx, "x", "application/merge-patch+json", patch, metav1.PatchOptions{})
			return err
		}},
		{"write the status", true, func() error {
			_, err := policies.Patch(ctx, "x", "application/merge-patch+json", []byte(`{"status":{"observedGeneration":1}}`), metav1.PatchOptions{}, "status")
			return err
		}},
		{"take the finalizer off and delete", true, func() error {
			if _, err := policies.Patch(ctx, "x", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
				return err
			}
			return policies.Delete(ctx, "x", metav1.DeleteOptions{})
		}},
		{"make an RdsAutopilot owned by the Rds", true, func() error {
			no := false
			object := newObject(t, rdsautopilots, "RdsAutopilot", `{}`)
			object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "otc.mcsps.de/v1alpha1", Kind: "Rds", Name: "x", UID: "u", Controller: &no, BlockOwnerDeletion: &no}})
			_, err := policies.Create(ctx, object, metav1.CreateOptions{})
			return err
		}},
		{"an event on somebody's object", true, func() error {
			event := &eventsv1.Event{
				ObjectMeta: metav1.ObjectMeta{Name: "e"}, EventTime: metav1.NowMicro(), ReportingController: "rds-autopilot", ReportingInstance: "i",
				Action: "GrowVolume", Reason: "GrowVolume", Type: "Normal", Regarding: corev1.ObjectReference{Namespace: namespace, Name: "x", Kind: "Rds"},
			}
			_, err := client.EventsV1().Events(namespace).Create(ctx, event, metav1.CreateOptions{})
			return err
		}},
		{"list events", false, func() error {
			_, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
			return err
		}},
		{"take the lease and renew it", true, func() error {
			made, err := client.CoordinationV1().Leases(own).Create(ctx, lease(own), metav1.CreateOptions{})
			if err != nil {
				return err
			}
			_, err = client.CoordinationV1().Leases(own).Update(ctx, made, metav1.UpdateOptions{})
			return err
		}},
		{"read another lease of its namespace", false, func() error {
			_, err := client.CoordinationV1().Leases(own).Get(ctx, "other", metav1.GetOptions{})
			return err
		}},
		{"update another lease of its namespace", false, func() error {
			_, err := client.CoordinationV1().Leases(own).Update(ctx, lease("other"), metav1.UpdateOptions{})
			return err
		}},
		{"a lease of another namespace", false, func() error {
			_, err := client.CoordinationV1().Leases(namespace).Create(ctx, lease(own), metav1.CreateOptions{})
			return err
		}},
		{"its own replicas", true, func() error {
			_, err := client.DiscoveryV1().EndpointSlices(own).List(ctx, metav1.ListOptions{})
			return err
		}},
		{"the pods of another namespace", false, func() error {
			_, err := client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{})
			return err
		}},
		{"make an EndpointSlice", false, func() error {
			_, err := client.DiscoveryV1().EndpointSlices(own).Create(ctx, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "x"}, AddressType: discoveryv1.AddressTypeIPv4}, metav1.CreateOptions{})
			return err
		}},
		{"the cluster's id", true, func() error {
			_, err := client.CoreV1().Namespaces().Get(ctx, "kube-system", metav1.GetOptions{})
			return err
		}},
		{"another namespace", false, func() error {
			_, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
			return err
		}},
		{"its own Secret", false, func() error {
			_, err := client.CoreV1().Secrets(own).Get(ctx, "otc-credentials", metav1.GetOptions{})
			return err
		}},
		{"secrets of everybody", false, func() error {
			_, err := client.CoreV1().Secrets("").List(ctx, metav1.ListOptions{})
			return err
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			switch err := c.do(); {
			case c.allowed && err != nil:
				t.Errorf("needed, and: %v", err)
			case !c.allowed && !apierrors.IsForbidden(err):
				t.Errorf("got %v, want it forbidden", err)
			}
		})
	}
}
