// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// right is one verb on one resource; as a value it is also a case.
type right struct{ verb, group, resource string }

func (r right) String() string {
	return strings.ToLower(strings.ReplaceAll(strings.Trim(r.verb+"-"+r.group+"-"+r.resource, "-"), "/", "-"))
}

// granted are the rules that the service has by deploy/rbac.yaml: in the cluster, in its own namespace and in kube-system.
type granted struct{ cluster, local, system []rbacv1.PolicyRule }

func rights(t *testing.T) (all granted) {
	t.Helper()
	objects, err := apiserver.Read(root + "/deploy/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := func(u *unstructured.Unstructured) []rbacv1.PolicyRule {
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role); err != nil {
			t.Fatal(err)
		}
		return role.Rules
	}
	for _, object := range objects {
		switch {
		case object.GetKind() == "ClusterRole" && object.GetName() == own+"-"+own: // the others are of users
			all.cluster = rules(object)
		case object.GetKind() == "Role" && object.GetNamespace() == metav1.NamespaceSystem:
			all.system = rules(object)
		case object.GetKind() == "Role":
			all.local = rules(object)
		}
	}
	if len(all.cluster) == 0 || len(all.local) == 0 || len(all.system) == 0 {
		t.Fatal("no rules")
	}
	return all
}

func each(rules []rbacv1.PolicyRule) (all []right) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, right{verb, group, resource})
				}
			}
		}
	}
	return all
}

// without returns the rules that are left when one right is gone.
func without(rules []rbacv1.PolicyRule, gone right) (left []rbacv1.PolicyRule) {
	for _, rule := range rules {
		for _, r := range each([]rbacv1.PolicyRule{rule}) {
			if r != gone {
				left = append(left, rbacv1.PolicyRule{
					APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}, ResourceNames: rule.ResourceNames,
				})
			}
		}
	}
	return left
}

// grant makes a ServiceAccount with these rules, in a namespace of its own, and waits until they are in force.
func grant(t *testing.T, w *world.World, namespace string, all granted) (kubeconfig string) {
	t.Helper()
	object := func(kind, namespace string, fields map[string]any) *unstructured.Unstructured {
		metadata := map[string]any{"name": "service-" + t.Name()[strings.LastIndex(t.Name(), "/")+1:]}
		if namespace != "" {
			metadata["namespace"] = namespace
		}
		fields["apiVersion"], fields["kind"], fields["metadata"] = "rbac.authorization.k8s.io/v1", kind, metadata
		return &unstructured.Unstructured{Object: fields}
	}
	plain := func(rules []rbacv1.PolicyRule) (list []any) {
		for i := range rules {
			rule, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rules[i])
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, rule)
		}
		return list
	}
	for _, r := range []*unstructured.Unstructured{
		object("ClusterRole", "", map[string]any{"rules": plain(all.cluster)}), object("Role", namespace, map[string]any{"rules": plain(all.local)}),
		object("Role", metav1.NamespaceSystem, map[string]any{"rules": plain(all.system)}),
	} {
		apply(t, w, r, object(r.GetKind()+"Binding", r.GetNamespace(), map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": r.GetKind(), "name": r.GetName()},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": own, "namespace": namespace}},
		}))
	}
	config, kubeconfig := as(t, w, namespace, own)
	all.waitAllowed(t, config, namespace)
	return kubeconfig
}

func (g granted) waitAllowed(t *testing.T, config *rest.Config, namespace string) {
	t.Helper()
	for _, r := range each(append(g.cluster, g.local...)) {
		waitAllowed(t, config, namespace, r)
	}
	for _, r := range each(g.system) {
		waitAllowed(t, config, metav1.NamespaceSystem, r)
	}
}

func waitAllowed(t *testing.T, config *rest.Config, namespace string, r right) {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	resource, subresource, _ := strings.Cut(r.resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: r.verb, Group: r.group, Resource: resource, Subresource: subresource, Namespace: namespace,
		Name: map[string]string{"namespaces": "kube-system", "leases": own}[resource],
	}}}
	err = world.Eventually(within(t), r.String()+" is in force", func(ctx context.Context) (bool, error) {
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var errForbidden = errors.New("the API server forbids something")

// work is a life of one database: armed, asked about, repaired twice, grown, deleted. It ends early where the service
// says that it may not do something.
func work(t *testing.T, w *world.World, namespace, kubeconfig string) error {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 90*time.Second, errors.New("the work is not done in time"))
	defer cancel()
	p, err := w.Serve(ctx, "--kubeconfig", kubeconfig, "--lease-namespace", namespace, "--watch-namespaces", namespace)
	if err != nil {
		return fmt.Errorf("it does not start: %w", err)
	}
	defer func() { _ = p.Kill() }()
	// Now, and not before: the operator drops spec.autopilot within a second.
	db := database(t, w, namespace, "db-"+namespace[max(0, len(namespace)-12):], true)
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	go func() {
		line, err := p.WaitLine(ctx, "it is forbidden something", func(l world.Line) bool { return strings.Contains(l.Raw, "forbidden") })
		if err == nil {
			giveUp(fmt.Errorf("%w: %s", errForbidden, line.Raw))
		}
	}()
	if err := lifeOf(ctx, w, db, kubeconfig); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return context.Cause(ctx)
}

func lifeOf(ctx context.Context, w *world.World, db *world.DB, kubeconfig string) error {
	if _, err := db.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
		return err
	}
	// As helm test asks; the service itself reads an Rds anew only where somebody takes a change back.
	plan, err := w.Run(ctx, []string{"plan", "--kubeconfig", kubeconfig, "--namespace", db.Namespace, db.Name}, nil)
	if err != nil {
		return err
	}
	if code, err := plan.Wait(ctx); err != nil || code != 0 {
		return fmt.Errorf("plan ends with %d: %w", code, errForbidden)
	}
	for range 2 { // the second event is equal to the first one, and becomes a patch of it
		rule, ok := db.Rule(v1alpha1.MetricStorage)
		if !ok || !w.Cloud.RemoveRule(rule.ID) {
			return errors.New("there is no rule for storage")
		}
		err := world.Eventually(ctx, "the rule is there again", func(context.Context) (bool, error) {
			_, ok := db.Rule(v1alpha1.MetricStorage)
			return ok, nil
		})
		if err != nil {
			return err
		}
	}
	if _, err := db.WaitAutopilot(ctx, "it is armed again", world.Armed); err != nil {
		return err
	}
	if err := db.SetWorkload(simcloud.Workload{UsedGB: 33}); err != nil {
		return err
	}
	if _, err := db.WaitRds(ctx, "it is grown", func(r *otcv1.Rds) bool { return r.Spec.VolumeSize == 50 }); err != nil {
		return err
	}
	admin, err := dynamic.NewForConfig(w.Kube.Config())
	if err != nil {
		return err
	}
	if err := admin.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(db.Namespace).Delete(ctx, db.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return world.Eventually(ctx, "its RdsAutopilot is gone", func(ctx context.Context) (bool, error) {
		_, err := db.Autopilot(ctx)
		return apierrors.IsNotFound(err), nil
	})
}

// TestEveryRightIsNeeded takes each right away in turn and sees the service fail.
func TestEveryRightIsNeeded(t *testing.T) {
	w := startWorld(t)
	all := rights(t)
	t.Run("all", func(t *testing.T) {
		namespace := realCluster(t, w).Namespace(t)
		if err := work(t, w, namespace, grant(t, w, namespace, all)); err != nil {
			t.Fatal(err)
		}
	})
	if t.Failed() {
		return
	}
	admin, err := kubernetes.NewForConfig(w.Kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	lacking := func(name string, r right, left granted) {
		t.Run(name, func(t *testing.T) {
			// The first installation of a cluster creates the lease of the claims, the others update it.
			leases := admin.CoordinationV1().Leases(metav1.NamespaceSystem)
			err := leases.Delete(within(t), own, metav1.DeleteOptions{})
			if r.verb != "create" && (err == nil || apierrors.IsNotFound(err)) {
				_, err = leases.Create(within(t), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: own}}, metav1.CreateOptions{})
			}
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			namespace := realCluster(t, w).Namespace(t)
			err = work(t, w, namespace, grant(t, w, namespace, left))
			if err == nil {
				t.Errorf("all is well without the right to %s %s/%s: take it out of the chart", r.verb, r.group, r.resource)
			}
			t.Log(err)
		})
	}
	for _, r := range append(each(all.cluster), each(all.local)...) {
		lacking(r.String(), r, granted{without(all.cluster, r), without(all.local, r), all.system})
	}
	for _, r := range each(all.system) {
		lacking("system-"+r.String(), r, granted{all.cluster, all.local, without(all.system, r)})
	}
}

// TestOneNamespaceIsEnough runs the service with what the chart grants where it watches one namespace: in the cluster, what
// removes its own finalizer.
func TestOneNamespaceIsEnough(t *testing.T) {
	w := startWorld(t)
	namespace := realCluster(t, w).Namespace(t)
	rendered := run(t, command(t, nil, tool(t, "helm"), "template", own, "deploy/chart", "--namespace", namespace, "--show-only", "templates/rbac.yaml",
		"--set", "publicURL=https://a.example.com/smn,watchNamespaces={"+namespace+"}"))
	if strings.Count(rendered, "kind: ClusterRole\n") != 2 { // the role, and the reference of its binding
		t.Errorf("it grants other rights in the cluster:\n%s", rendered)
	}
	if err := w.Apply(within(t), write(t, "rbac.yaml", rendered)); err != nil {
		t.Fatal(err)
	}
	config, kubeconfig := as(t, w, namespace, own)
	rights(t).waitAllowed(t, config, namespace)
	if err := work(t, w, namespace, kubeconfig); err != nil {
		t.Error(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace("default").List(within(t), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("another namespace: %v, want it forbidden", err)
	}
}
