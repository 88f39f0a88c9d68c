// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/test/apiserver"
)

const (
	own = "rds-autopilot" // namespace, ServiceAccount, Deployment and lease
)

func clientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

// rights returns what the API server allows a ServiceAccount of the service's namespace to do in another namespace, as "verb
// group/resource name".
func rights(t *testing.T, account, namespace string) map[string]bool {
	t.Helper()
	config, err := shared.Cluster(t).ServiceAccountConfig(t.Context(), own, account)
	must(t, err)
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	answer, err := clientset(t, config).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil || answer.Status.Incomplete {
		t.Fatalf("%v: %+v", err, answer)
	}
	set := map[string]bool{}
	for _, rule := range answer.Status.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range append(rule.ResourceNames, "")[:max(1, len(rule.ResourceNames))] {
						set[strings.TrimSpace(verb+" "+group+"/"+resource+" "+name)] = true
					}
				}
			}
		}
	}
	return set
}

func TestServiceAccountHasExactlyTheseRights(t *testing.T) {
	if _, err := shared.Cluster(t).Apply(t.Context(), apiserver.ApplyOptions{}, "namespace.yaml", "rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	everywhere := []string{
		"get otc.mcsps.de/rdss", "list otc.mcsps.de/rdss", "watch otc.mcsps.de/rdss", "patch otc.mcsps.de/rdss",
		"get autopilot.otc.mcsps.de/rdsautopilots", "list autopilot.otc.mcsps.de/rdsautopilots", "watch autopilot.otc.mcsps.de/rdsautopilots",
		"create autopilot.otc.mcsps.de/rdsautopilots", "patch autopilot.otc.mcsps.de/rdsautopilots/status",
		"create events.k8s.io/events", "patch events.k8s.io/events", "get /namespaces kube-system",
	}
	lease := []string{
		"create coordination.k8s.io/leases",
		"get coordination.k8s.io/leases rds-autopilot", "update coordination.k8s.io/leases rds-autopilot",
	}
	topic := []string{"create /configmaps"}
	for _, verb := range []string{"get", "list", "watch", "patch", "delete"} {
		topic = append(topic, verb+" /configmaps rds-autopilot-topic")
	}
	doctor := []string{"list events.k8s.io/events", "delete autopilot.otc.mcsps.de/rdsautopilots rds-autopilot-doctor"}
	for namespace, want := range map[string][]string{
		"default": everywhere,
		own:       slices.Concat(everywhere, lease, topic, doctor),
	} {
		var got map[string]bool
		// The API server learns of the bindings with a delay.
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			got = rights(t, own, namespace)
			return !slices.ContainsFunc(want, func(right string) bool { return !got[right] }), nil
		})
		for right := range rights(t, "nobody", namespace) {
			delete(got, right) // what everybody has
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("rights in %s (-want +got), %v:\n%s", namespace, err, diff)
		}
	}
}

// Kubernetes adds the rules of ClusterRoles with these labels to its own roles for users.
func TestRolesOfUsersMayWriteRdsAutopilotsButNotTheirStatus(t *testing.T) {
	got := map[string][]any{}
	for _, object := range read(t, "rbac.yaml") {
		for label := range object.GetLabels() {
			if role, ok := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); ok {
				got[role] = append(got[role], object.Object["rules"].([]any)...)
			}
		}
	}
	rule := func(verbs ...any) any {
		return map[string]any{"apiGroups": []any{rdsautopilots.Group}, "resources": []any{rdsautopilots.Resource}, "verbs": verbs}
	}
	view, edit := rule("get", "list", "watch"), rule("create", "update", "patch", "delete", "deletecollection")
	if diff := cmp.Diff(map[string][]any{"view": {view}, "edit": {view, edit}, "admin": {view, edit}}, got); diff != "" {
		t.Errorf("the rules (-want +got):\n%s", diff)
	}
}

// The least rights are those of the calls in the transport's table. The code cannot make other calls. Only one of the two
// files has the rights to change an instance.
func TestPoliciesAllowExactlyTheCallsOfTheCode(t *testing.T) {
	changes := []string{"rds:instance:extendSpace", "rds:instance:modifySpec"}
	needed := map[string]bool{}
	free := []string{"Login", "ListFlavors", "GetJob"} // RDS api: rds_actions.rst: no authorization required, or none documented
	for operation, right := range otc.Rights() {
		if (right == "") != slices.Contains(free, operation) {
			t.Errorf("%s needs the right %q", operation, right)
		}
		if right != "" && !slices.Contains(changes, right) {
			needed[right] = true
		}
	}
	reads := slices.Sorted(maps.Keys(needed))
	for file, want := range map[string][]string{
		"policy-read-only.json": reads, "policy-apply-cloud.json": slices.Sorted(slices.Values(slices.Concat(reads, changes))),
	} {
		if diff := cmp.Diff(want, allowed(t, file)); diff != "" {
			t.Errorf("%s (-code +file):\n%s", file, diff)
		}
	}
}

// allowed returns the actions that a policy of the examples allows, sorted.
func allowed(t *testing.T, file string) (actions []string) {
	t.Helper()
	var policy struct {
		Version   string
		Statement []struct {
			Effect string
			Action []string
		}
	}
	if err := json.Unmarshal([]byte(document(t, "deploy/examples/"+file)), &policy); err != nil || policy.Version != "1.1" {
		t.Fatalf("%s: %v: %+v", file, err, policy)
	}
	for _, s := range policy.Statement {
		if s.Effect != "Allow" {
			t.Errorf("%s: %+v", file, s)
		}
		actions = append(actions, s.Action...)
	}
	slices.Sort(actions)
	return actions
}
