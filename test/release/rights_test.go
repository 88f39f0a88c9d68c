// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// The scopes of the service's rights by deploy/rbac.yaml.
const (
	inCluster      = "cluster"
	inOwnNamespace = "own"
)

// right is one verb on one resource. An empty name means all objects.
type right struct{ scope, verb, group, resource, name string }

func (r right) String() string {
	return strings.ToLower(strings.ReplaceAll(strings.Join([]string{r.scope, r.verb, r.group, r.resource}, "-"), "/", "-"))
}

func (r right) rule() rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}}
	if r.name != "" {
		rule.ResourceNames = []string{r.name}
	}
	return rule
}

// serviceRights returns the rights of deploy/rbac.yaml, without those of users.
func serviceRights(t *testing.T) (all []right) {
	t.Helper()
	objects, err := apiserver.Read(deploy + "/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		scope := inOwnNamespace
		switch {
		case object.GetKind() == "ClusterRole" && object.GetName() == releaseName+"."+releaseName:
			scope = inCluster
		case object.GetKind() != "Role":
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, right{scope, verb, rule.APIGroups[0], resource, strings.Join(rule.ResourceNames, "")})
				}
			}
		}
	}
	if len(all) < 15 {
		t.Fatalf("only the rights %v", all)
	}
	return all
}

// grant binds rights to the ServiceAccount of a namespace and waits until they are in force. It returns the path of a kubeconfig.
func grant(t *testing.T, w *world.World, namespace string, rights []right) (kubeconfig string) {
	t.Helper()
	client, _ := clients(t, w.Kube.Config())
	meta := metav1.ObjectMeta{Name: "service-" + namespace}
	rules := map[string][]rbacv1.PolicyRule{}
	for _, r := range rights {
		rules[r.scope] = append(rules[r.scope], r.rule())
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: releaseName, Namespace: namespace}}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules[inCluster]}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: meta.Name}}
	_, err1 := client.RbacV1().ClusterRoles().Create(world.Within(t), role, metav1.CreateOptions{})
	_, err2 := client.RbacV1().ClusterRoleBindings().Create(world.Within(t), binding, metav1.CreateOptions{})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	ownBinding := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: meta.Name}}
	ownRole := &rbacv1.Role{ObjectMeta: meta, Rules: rules[inOwnNamespace]}
	_, err1 = client.RbacV1().Roles(namespace).Create(world.Within(t), ownRole, metav1.CreateOptions{})
	_, err2 = client.RbacV1().RoleBindings(namespace).Create(world.Within(t), ownBinding, metav1.CreateOptions{})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	config, kubeconfig := serviceAccountAccess(t, w, namespace, releaseName)
	waitAllowed(t, config, namespace, rights...)
	return kubeconfig
}

// waitAllowed waits until the API server allows rights in a namespace.
func waitAllowed(t *testing.T, config *rest.Config, namespace string, rights ...right) {
	t.Helper()
	client, _ := clients(t, config)
	for _, r := range rights {
		resource, subresource, _ := strings.Cut(r.resource, "/")
		attributes := &authorizationv1.ResourceAttributes{
			Verb: r.verb, Group: r.group, Resource: resource, Subresource: subresource, Name: r.name, Namespace: namespace,
		}
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
		waitUntil(t, r.String()+" is in force", func(ctx context.Context) (bool, error) {
			answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err == nil && answer.Status.Allowed, err
		})
	}
}

var errForbidden = errors.New("the API server forbids something")

// runLife runs the service in a namespace through the life of one database. It returns early if the service logs that something
// is forbidden.
func runLife(t *testing.T, w *world.World, namespace, kubeconfig string) error {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 90*time.Second, errors.New("the life takes too long"))
	defer cancel()
	p, err := w.Serve(ctx, "--kubeconfig", kubeconfig, "--lease-namespace", namespace, "--watch-namespaces", namespace)
	if err != nil {
		return fmt.Errorf("it does not start: %w", err)
	}
	defer func() { _ = p.Kill() }()
	// The service must run first, because the operator drops spec.autopilot within a second.
	db := database(t, w, namespace, "db-"+namespace[max(0, len(namespace)-12):], true)
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	go func() {
		line, err := p.WaitLine(ctx, "it is forbidden something", func(l world.Line) bool { return strings.Contains(l.Raw, "forbidden") })
		if err == nil {
			giveUp(fmt.Errorf("%w: %s", errForbidden, line.Raw))
		}
	}()
	if err := life(ctx, w, db, kubeconfig); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// life waits until a database is armed, planned for, repaired twice, grown and deleted.
func life(ctx context.Context, w *world.World, db *world.DB, kubeconfig string) error {
	if _, err := db.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
		return err
	}
	// plan gets an Rds. The service itself does so only if another writer reverts a change.
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
	for _, kind := range []schema.GroupVersionResource{ // the garbage collector of a cluster deletes the second one
		otcv1.GroupVersion().WithResource(otcv1.Resource), v1alpha1.GroupVersion().WithResource(v1alpha1.Resource),
	} {
		if err := admin.Resource(kind).Namespace(db.Namespace).Delete(ctx, db.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	topics := admin.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(db.Namespace)
	return world.Eventually(ctx, "its rules and the topic are gone", func(ctx context.Context) (bool, error) {
		_, err := topics.Get(ctx, "rds-autopilot-topic", metav1.GetOptions{})
		_, hasRule := db.Rule(v1alpha1.MetricStorage)
		return !hasRule && apierrors.IsNotFound(err), nil
	})
}

// TestEveryRightIsNeeded takes each right away in turn and sees the service fail.
func TestEveryRightIsNeeded(t *testing.T) {
	w := startWorld(t)
	all := serviceRights(t)
	t.Run("all", func(t *testing.T) {
		namespace := w.Kube.Namespace(t)
		if err := runLife(t, w, namespace, grant(t, w, namespace, all)); err != nil {
			t.Fatal(err)
		}
	})
	if t.Failed() {
		return
	}
	for i, r := range all {
		if r.resource == "events" && r.verb == "list" || r.verb == "delete" && r.group == v1alpha1.Group {
			continue // only doctor needs them
		}
		t.Run(r.String(), func(t *testing.T) {
			namespace := w.Kube.Namespace(t)
			err := runLife(t, w, namespace, grant(t, w, namespace, slices.Delete(slices.Clone(all), i, i+1)))
			if err == nil {
				t.Errorf("the service does not need the right to %s %s/%s: remove it from the chart", r.verb, r.group, r.resource)
			}
			t.Log(err)
		})
	}
}
