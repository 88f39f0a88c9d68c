// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestPeopleMayDoWhatTheClustersOwnRolesSay asks the API server as somebody with view, edit or admin in a namespace. Summing up
// the roles is the work of the controller manager, which does not run here; so the test sums up what the API server's own
// selectors find.
func TestPeopleMayDoWhatTheClustersOwnRolesSay(t *testing.T) {
	service(t) // rbac.yaml is applied
	cluster := shared.Cluster(t)
	client := clientset(t, cluster.Config())
	reading, writing, all := []string{"get", "list", "watch"}, []string{"create", "update", "patch", "delete", "deletecollection"}, map[string]bool{}
	for _, verb := range append(reading, writing...) {
		all[verb] = true
	}
	for role, may := range map[string][]string{"view": reading, "edit": append(reading, writing...), "admin": append(reading, writing...)} {
		t.Run(role, func(t *testing.T) {
			namespace := cluster.Namespace(t)
			of, err := client.RbacV1().ClusterRoles().Get(t.Context(), role, metav1.GetOptions{})
			if err != nil || of.AggregationRule == nil {
				t.Fatalf("%v: %+v", err, of)
			}
			var rules []rbacv1.PolicyRule
			for _, selector := range of.AggregationRule.ClusterRoleSelectors {
				found, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&selector)})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range found.Items {
					rules = append(rules, r.Rules...)
				}
			}
			user := fmt.Sprintf("%s-of-%s", role, namespace)
			if _, err := client.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: rules}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			config := rest.CopyConfig(cluster.Config())
			config.Impersonate = rest.ImpersonationConfig{UserName: user}
			somebody := clientset(t, config)
			allowed := func(verb, subresource, in string) bool {
				answer, err := somebody.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
					Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: in, Verb: verb, Group: rdsautopilots.Group, Resource: rdsautopilots.Resource, Subresource: subresource,
					}},
				}, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return answer.Status.Allowed
			}
			inForce(t, func() bool { return allowed("get", "", namespace) })
			wanted := map[string]bool{}
			for _, verb := range may {
				wanted[verb] = true
			}
			for verb := range all {
				if got := allowed(verb, "", namespace); got != wanted[verb] {
					t.Errorf("%s rdsautopilots: %v", verb, got)
				}
				if allowed(verb, "status", namespace) {
					t.Errorf("may %s the status", verb)
				}
				if allowed(verb, "", "kube-system") {
					t.Errorf("may %s elsewhere", verb)
				}
			}
		})
	}
}
