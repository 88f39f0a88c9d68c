// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestClusterRolesGrantUsersRdsAutopilotsButNotTheirStatus aggregates the cluster's own roles by the API server's selectors. The
// controller manager, which does this in a cluster, does not run here.
func TestClusterRolesGrantUsersRdsAutopilotsButNotTheirStatus(t *testing.T) {
	service(t) // rbac.yaml is applied
	roles := clientset(t, shared.Cluster(t).Config()).RbacV1().ClusterRoles()
	view := []string{"get", "list", "watch"}
	edit := append(slices.Clone(view), "create", "update", "patch", "delete", "deletecollection")
	for name, want := range map[string][]string{"view": view, "edit": edit, "admin": edit} {
		role, err := roles.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || role.AggregationRule == nil {
			t.Fatalf("%v: %+v", err, role)
		}
		granted := map[string]map[string]bool{} // verbs by resource
		for _, selector := range role.AggregationRule.ClusterRoleSelectors {
			found, err := roles.List(t.Context(), metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&selector)})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range found.Items {
				addVerbs(granted, r.Rules)
			}
		}
		for _, verb := range want {
			if !granted[rdsautopilots.Resource][verb] {
				t.Errorf("%s may not %s rdsautopilots", name, verb)
			}
			delete(granted[rdsautopilots.Resource], verb)
		}
		if diff := cmp.Diff(map[string]map[string]bool{rdsautopilots.Resource: {}}, granted); diff != "" {
			t.Errorf("%s has other rights in our group (-want +got):\n%s", name, diff)
		}
	}
}

// addVerbs adds the verbs that rules grant on each resource of our group.
func addVerbs(granted map[string]map[string]bool, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		if !slices.Contains(rule.APIGroups, rdsautopilots.Group) && !slices.Contains(rule.APIGroups, "*") {
			continue
		}
		for _, resource := range rule.Resources {
			if granted[resource] == nil {
				granted[resource] = map[string]bool{}
			}
			for _, verb := range rule.Verbs {
				granted[resource][verb] = true
			}
		}
	}
}
