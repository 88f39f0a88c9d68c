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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/world"
)

// inNamespaces grants what the chart grants where it watches these namespaces, and returns the access of the service, which
// is in a namespace of its own.
func inNamespaces(t *testing.T, w *world.World, namespaces ...string) (home string, config *rest.Config, kubeconfig string) {
	t.Helper()
	home = realCluster(t, w).Namespace(t)
	rendered := run(t, command(t, nil, tool(t, "helm"), "template", own, "deploy/chart", "--namespace", home, "--show-only", "templates/rbac.yaml",
		"--set", "publicURL=https://a.example.com/smn,watchNamespaces={"+strings.Join(namespaces, ",")+"}"))
	if err := w.Apply(within(t), write(t, "rbac.yaml", rendered)); err != nil {
		t.Fatal(err)
	}
	config, kubeconfig = as(t, w, home, own)
	for _, ns := range namespaces {
		waitAllowed(t, config, ns, right{"patch", otcv1.Group, otcv1.Resource})
	}
	waitAllowed(t, config, "default", right{"patch", v1alpha1.Group, v1alpha1.Resource})
	return home, config, kubeconfig
}

// TestDeletedNamespaceStopsNoOther deletes a watched namespace: its RoleBinding goes first, as kubectl delete ns has it.
// The finalizer is removed all the same, although the service restarts meanwhile, and the other namespace is served.
func TestDeletedNamespaceStopsNoOther(t *testing.T) {
	w := startWorld(t)
	shop := realCluster(t, w).Namespace(t)
	admin, err1 := kubernetes.NewForConfig(w.Kube.Config())
	objects, err2 := dynamic.NewForConfig(w.Kube.Config())
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	// The name comes first in the list: the service must not ask this namespace alone whether the API server answers.
	aaa := "aaa-" + shop
	if _, err := admin.CoreV1().Namespaces().Create(within(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: aaa}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	home, config, kubeconfig := inNamespaces(t, w, aaa, shop)
	flags := []string{"--kubeconfig", kubeconfig, "--lease-namespace", home, "--watch-namespaces", aaa + "," + shop}
	p, err := w.Serve(within(t), flags...)
	if err != nil {
		t.Fatal(err)
	}
	gone, stays := database(t, w, aaa, "db-gone", true), database(t, w, shop, "db-stays", true)
	for _, db := range []*world.DB{gone, stays} {
		if _, err := db.WaitAutopilot(within(t), "it is armed", world.Armed); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}

	// No controller runs here: this is what that of namespaces does.
	if err := admin.CoreV1().Namespaces().Delete(within(t), aaa, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := admin.RbacV1().RoleBindings(aaa).Delete(within(t), own+"-databases", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, of := range []dynamic.NamespaceableResourceInterface{
		objects.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)), objects.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)),
	} {
		if err := of.Namespace(aaa).Delete(within(t), gone.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	service, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	err = world.Eventually(within(t), "the RoleBinding is out of force", func(ctx context.Context) (bool, error) {
		_, err := service.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(aaa).List(ctx, metav1.ListOptions{})
		return apierrors.IsForbidden(err), nil
	})
	if err != nil {
		t.Fatal(err)
	}

	p, err = w.Serve(within(t), flags...)
	if err != nil {
		t.Fatalf("one namespace is readable: %v", err)
	}
	defer stop(t, p)
	err = world.Eventually(within(t), "the RdsAutopilot of the deleted namespace is gone", func(ctx context.Context) (bool, error) {
		_, err := gone.Autopilot(ctx)
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range inTheCloud(w) {
		if strings.Contains(name, "db-gone") {
			t.Errorf("left in the cloud: %s", name)
		}
	}
	answer, err := http.Get(p.AdminURL + "/readyz")
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("it is not ready: %v, %v", answer, err)
	}
	if rule, ok := stays.Rule(v1alpha1.MetricStorage); !ok || !w.Cloud.RemoveRule(rule.ID) {
		t.Fatal("there is no rule for storage")
	}
	err = world.Eventually(within(t), "the other database is looked after", func(context.Context) (bool, error) {
		_, ok := stays.Rule(v1alpha1.MetricStorage)
		return ok, nil
	})
	if err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(p.Lines(), func(l world.Line) bool {
		return l.Field("namespace") == aaa && strings.Contains(l.Msg, "refuses to list")
	}) {
		t.Error("no warning names the namespace")
	}
}

// TestUpgradeStopsWhileANamespaceThatLeavesNeedsTheService goes the documented way out of a namespace.
func TestUpgradeStopsWhileANamespaceThatLeavesNeedsTheService(t *testing.T) {
	w := startWorld(t)
	leaves, stays := realCluster(t, w).Namespace(t), realCluster(t, w).Namespace(t)
	home, _, kubeconfig := inNamespaces(t, w, leaves, stays)
	values := func(namespaces ...string) []string {
		return []string{own, "deploy/chart", "--namespace", home, "--set", "publicURL=https://a.example.com/smn,watchNamespaces={" + strings.Join(namespaces, ",") + "}"}
	}
	deployment := run(t, command(t, nil, tool(t, "helm"), append([]string{"template", "--show-only", "templates/deployment.yaml"}, values(leaves, stays)...)...))
	if err := w.Apply(within(t), write(t, "deployment.yaml", deployment)); err != nil {
		t.Fatal(err)
	}
	p, err := w.Serve(within(t), "--kubeconfig", kubeconfig, "--lease-namespace", home, "--watch-namespaces", leaves+","+stays)
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, p)
	db := database(t, w, leaves, "db-leaves", true)
	if _, err := db.WaitAutopilot(within(t), "it is armed", world.Armed); err != nil {
		t.Fatal(err)
	}

	var hook corev1.Pod
	rendered := run(t, command(t, nil, tool(t, "helm"), append([]string{
		"template", "--is-upgrade", "--dry-run=server", "--kubeconfig", w.AdminKubeconfig(), "--show-only", "templates/upgradecheck.yaml",
	}, values(stays)...)...))
	if err := yaml.Unmarshal([]byte(rendered), &hook); err != nil || len(hook.Spec.Containers) != 1 {
		t.Fatalf("no check before the upgrade: %v\n%s", err, rendered)
	}
	check := func() (code int, text string) {
		t.Helper()
		p, err := w.Run(within(t), append(slices.Clone(hook.Spec.Containers[0].Args), "--kubeconfig", kubeconfig), nil)
		if err != nil {
			t.Fatal(err)
		}
		if code, err = p.Wait(within(t)); err != nil {
			t.Fatal(err)
		}
		for _, l := range p.Lines() {
			text += l.Raw + "\n"
		}
		return code, text
	}
	if code, text := check(); code != 1 || !strings.Contains(text, leaves+"/db-leaves") {
		t.Errorf("the check before the upgrade ends with %d:\n%s", code, text)
	}
	if err := db.PatchAutopilot(within(t), `{"spec":{"mode":"Off"}}`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.WaitAutopilot(within(t), "no finalizer is left", func(a *v1alpha1.RdsAutopilot) bool { return len(a.Finalizers) == 0 }); err != nil {
		t.Fatal(err)
	}
	if code, text := check(); code != 0 {
		t.Errorf("after the way out, the check ends with %d:\n%s", code, text)
	}
}
