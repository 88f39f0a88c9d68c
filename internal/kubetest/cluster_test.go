// SPDX-License-Identifier: Apache-2.0

package kubetest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mcsps/rds-autopilot/internal/kubetest"
)

var shared = kubetest.Shared{Options: kubetest.Options{CRDs: []string{"testdata/widgets.yaml"}}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func clientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func widgets(t *testing.T, cluster *kubetest.Cluster, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "kubetest.example", Version: "v1", Resource: "widgets"}).Namespace(namespace)
}

func size(t *testing.T, object *unstructured.Unstructured) int64 {
	t.Helper()
	n, _, err := unstructured.NestedInt64(object.Object, "spec", "size")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestReportsThePinnedVersion(t *testing.T) {
	t.Parallel()
	info, err := clientset(t, shared.Cluster(t).Config()).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("servers/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "\tk8s.io/kubernetes "+info.GitVersion+" ") || info.Major != "1" || info.Minor == "" {
		t.Errorf("the server reports %s (%s.%s), which servers/go.mod does not pin", info.GitVersion, info.Major, info.Minor)
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	cluster := shared.Cluster(t)

	t.Run("a custom resource after its definition in one file, with the schema's default", func(t *testing.T) {
		object, err := widgets(t, cluster, "default").Get(t.Context(), "first", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := size(t, object); got != 40 {
			t.Errorf("spec.size is %d, the default is 40", got)
		}
	})

	t.Run("dry run answers with defaults and keeps nothing", func(t *testing.T) {
		namespace := cluster.Namespace(t)
		file := write(t, "apiVersion: kubetest.example/v1\nkind: Widget\nmetadata: {name: w}\nspec: {}\n")
		got, err := cluster.Apply(t.Context(), kubetest.ApplyOptions{DryRun: true, Namespace: namespace}, file)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || got[0].GetNamespace() != namespace || size(t, got[0]) != 40 {
			t.Errorf("got %v", got)
		}
		if _, err := widgets(t, cluster, namespace).Get(t.Context(), "w", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("after a dry run: %v, want not found", err)
		}
	})

	refused := map[string]struct{ manifest, want string }{
		"over the maximum":    {"apiVersion: kubetest.example/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 101}\n", "less than or equal to 100"},
		"an unknown field":    {"apiVersion: kubetest.example/v1\nkind: Widget\nmetadata: {name: w}\nspec: {sise: 1}\n", "sise"},
		"a key twice":         {"apiVersion: kubetest.example/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1, size: 2}\n", "size"},
		"an unknown kind":     {"apiVersion: kubetest.example/v1\nkind: Gadget\nmetadata: {name: w}\n", "Gadget"},
		"not an object":       {"just text\n", "read manifests"},
		"a file without kind": {"metadata: {name: w}\n", "Kind"},
	}
	for name, c := range refused {
		t.Run("refuses "+name, func(t *testing.T) {
			_, err := cluster.Apply(t.Context(), kubetest.ApplyOptions{DryRun: true}, write(t, c.manifest))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestConflictIsReal(t *testing.T) {
	t.Parallel()
	cluster := shared.Cluster(t)
	client := widgets(t, cluster, cluster.Namespace(t))
	made, err := client.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubetest.example/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stale := []byte(`{"metadata":{"resourceVersion":"` + made.GetResourceVersion() + `"},"status":{"size":1}}`)
	if _, err := client.Patch(t.Context(), "w", "application/merge-patch+json", stale, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatalf("the first writer: %v", err)
	}
	_, err = client.Patch(t.Context(), "w", "application/merge-patch+json", stale, metav1.PatchOptions{}, "status")
	if !apierrors.IsConflict(err) {
		t.Errorf("the second writer with the same resourceVersion: %v, want a conflict", err)
	}
}

func TestServiceAccountHasItsRightsAndNoOthers(t *testing.T) {
	t.Parallel()
	cluster := shared.Cluster(t)
	namespace := cluster.Namespace(t)
	config, err := cluster.ServiceAccountConfig(t.Context(), namespace, "somebody")
	if err != nil {
		t.Fatal(err)
	}
	somebody := clientset(t, config)
	list := func() error {
		_, err := somebody.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:"+namespace+":somebody") {
		t.Fatalf("without a role: %v, want forbidden, for that ServiceAccount", err)
	}

	rbac := clientset(t, cluster.Config()).RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}}
	if _, err := rbac.Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "r"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "r"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "somebody", Namespace: namespace}},
	}
	if _, err := rbac.RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the role takes effect", list)
	if err := somebody.CoreV1().ConfigMaps(namespace).Delete(t.Context(), "x", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a verb that the role lacks: %v, want forbidden", err)
	}
}

func TestKubeconfigIsAFileLikeAnyOther(t *testing.T) {
	t.Parallel()
	cluster := shared.Cluster(t)
	account, err := cluster.ServiceAccountConfig(t.Context(), cluster.Namespace(t), "reader")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config *rest.Config
		allow  bool
	}{"admin": {cluster.Config(), true}, "ServiceAccount": {account, false}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			if err := kubetest.WriteKubeconfig(path, c.config); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v %v, want a file for its owner alone", info.Mode(), err)
			}
			config, err := clientcmd.BuildConfigFromFlags("", path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = clientset(t, config).CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
			if c.allow && err != nil || !c.allow && !apierrors.IsForbidden(err) {
				t.Errorf("list secrets: %v", err)
			}
		})
	}
}

func TestOutages(t *testing.T) {
	t.Parallel()
	cluster, err := kubetest.Start(t.Context(), kubetest.Options{}) // not the shared one: others would feel it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	namespaces := clientset(t, cluster.Config()).CoreV1().Namespaces()
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	get := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := namespaces.Get(ctx, "kept", metav1.GetOptions{})
		return err
	}

	if err := cluster.PauseAPIServer(); err != nil {
		t.Fatal(err)
	}
	err = get(300 * time.Millisecond)
	for range 100 { // the signal takes a moment to reach a busy process
		if err != nil {
			break
		}
		err = get(300 * time.Millisecond)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("paused: %v, want no answer", err)
	}
	if err := cluster.ResumeAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := get(5 * time.Minute); err != nil {
		t.Errorf("resumed: %v", err)
	}

	if err := cluster.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := get(5 * time.Minute); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("killed: %v, want a refused connection", err)
	}
	for name, outage := range map[string]func() error{"pause": cluster.PauseAPIServer, "resume": cluster.ResumeAPIServer, "kill": cluster.KillAPIServer} {
		if outage() == nil {
			t.Errorf("%s without a server succeeds", name)
		}
	}
	if err := cluster.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := get(5 * time.Minute); err != nil {
		t.Errorf("restarted: %v, want the same data at the same address for the same keys", err)
	}
	if cluster.RestartAPIServer(t.Context()) == nil {
		t.Error("a running server is restarted")
	}
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually repeats try for at most five minutes.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within five minutes: %v", what, err)
		case <-tick.C:
		}
	}
}
