// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/world"
)

// inNamespaces grants the rights of a chart that watches these namespaces. It returns the namespace of the service, and the
// service's access.
func inNamespaces(t *testing.T, w *world.World, namespaces ...string) (home string, config *rest.Config, kubeconfig string) {
	t.Helper()
	home = w.Kube.Namespace(t)
	rendered := templateIn(t, home, "--show-only", "templates/rbac.yaml",
		"--set", "publicURL=https://a.example.com/smn,watchNamespaces={"+strings.Join(namespaces, ",")+"}")
	if err := w.Apply(world.Within(t), tempFile(t, "rbac.yaml", rendered)); err != nil {
		t.Fatal(err)
	}
	config, kubeconfig = serviceAccountAccess(t, w, home, releaseName)
	for _, ns := range namespaces {
		waitAllowed(t, config, ns, right{verb: "patch", group: otcv1.Group, resource: otcv1.Resource})
	}
	waitAllowed(t, config, "default", right{verb: "get", group: v1alpha1.Group, resource: v1alpha1.Resource})
	return home, config, kubeconfig
}

// TestDeletedNamespaceStopsNoOther deletes a watched namespace. Kubernetes deletes its RoleBinding before its RdsAutopilots.
// The service restarts in between, removes the rules all the same, and serves the other namespace.
func TestDeletedNamespaceStopsNoOther(t *testing.T) {
	w := startWorld(t)
	shop := w.Kube.Namespace(t)
	admin, objects := clients(t, w.Kube.Config())
	// The name comes first in the list: the service must not ask this namespace alone whether the API server answers.
	aaa := "aaa-" + shop
	if _, err := admin.CoreV1().Namespaces().Create(world.Within(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: aaa}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	home, config, kubeconfig := inNamespaces(t, w, aaa, shop)
	flags := []string{"--kubeconfig", kubeconfig, "--lease-namespace", home, "--watch-namespaces", aaa + "," + shop}
	p, err := w.Serve(world.Within(t), flags...)
	if err != nil {
		t.Fatal(err)
	}
	gone, stays := database(t, w, aaa, "db-gone", true), database(t, w, shop, "db-stays", true)
	waitArmed(t, gone, stays)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}

	// No controller deletes the objects of a namespace here, so the test does.
	if err := admin.CoreV1().Namespaces().Delete(world.Within(t), aaa, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := admin.RbacV1().RoleBindings(aaa).Delete(world.Within(t), home+"."+releaseName+".databases", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, of := range []dynamic.NamespaceableResourceInterface{
		objects.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)), objects.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)),
	} {
		if err := of.Namespace(aaa).Delete(world.Within(t), gone.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	_, service := clients(t, config)
	waitUntil(t, "the API server has noticed that the RoleBinding is gone", func(ctx context.Context) (bool, error) {
		_, err := service.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(aaa).List(ctx, metav1.ListOptions{})
		return apierrors.IsForbidden(err), nil
	})

	p = w.MustServe(t, flags...) // it can list the other namespace
	waitUntil(t, "its rules are gone", func(context.Context) (bool, error) {
		return !slices.ContainsFunc(cloudObjects(w), func(name string) bool { return strings.Contains(name, "db-gone") }), nil
	})
	if status, text, err := p.Get(world.Within(t), "/readyz"); err != nil || status != http.StatusOK {
		t.Errorf("/readyz: %d, %s, %v", status, text, err)
	}
	if rule, ok := stays.Rule(v1alpha1.MetricStorage); !ok || !w.Cloud.RemoveRule(rule.ID) {
		t.Fatal("there is no rule for storage")
	}
	waitUntil(t, "the service repairs the other database's rule", func(context.Context) (bool, error) {
		_, ok := stays.Rule(v1alpha1.MetricStorage)
		return ok, nil
	})
	if !slices.ContainsFunc(p.Lines(), func(l world.Line) bool {
		return l.Field("namespace") == aaa && strings.Contains(l.Msg, "refuses to list")
	}) {
		t.Error("no warning names the namespace")
	}
}
