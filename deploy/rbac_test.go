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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

const (
	own    = "rds-autopilot" // namespace, ServiceAccount and lease
	system = metav1.NamespaceSystem
)

// service returns access as the ServiceAccount of rbac.yaml, once both bindings are in force.
func service(t *testing.T) *rest.Config {
	t.Helper()
	cluster := shared.Cluster(t)
	if _, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{}, "namespace.yaml", "rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	config, err := cluster.ServiceAccountConfig(t.Context(), own, own)
	if err != nil {
		t.Fatal(err)
	}
	inForce(t, func() bool {
		got := rights(t, config, own)
		return got["patch otc.mcsps.de/rdss"] && got["create coordination.k8s.io/leases"] && rights(t, config, system)["get /namespaces kube-system"]
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

func TestServiceAccountHasExactlyTheseRights(t *testing.T) {
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
	}
	lease := []string{
		"create coordination.k8s.io/leases",
		"get coordination.k8s.io/leases rds-autopilot", "update coordination.k8s.io/leases rds-autopilot",
	}
	for namespace, want := range map[string][]string{
		"default": everywhere,
		own:       slices.Concat(everywhere, lease),
		system:    slices.Concat(everywhere, lease, []string{"get /namespaces kube-system"}),
	} {
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
