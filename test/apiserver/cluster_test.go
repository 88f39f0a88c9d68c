// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

var shared = apiserver.Shared{Options: apiserver.Options{CRDs: []string{"testdata/widgets.yaml"}}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func clientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func widgets(t *testing.T, cluster *apiserver.Cluster, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "apiserver.example", Version: "v1", Resource: "widgets"}).Namespace(namespace)
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
		file := write(t, "apiVersion: apiserver.example/v1\nkind: Widget\nmetadata: {name: w}\nspec: {}\n")
		got, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{DryRun: true, Namespace: namespace}, file)
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
		"over the maximum":    {"apiVersion: apiserver.example/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 101}\n", "less than or equal to 100"},
		"an unknown field":    {"apiVersion: apiserver.example/v1\nkind: Widget\nmetadata: {name: w}\nspec: {sise: 1}\n", "sise"},
		"a key twice":         {"apiVersion: apiserver.example/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1, size: 2}\n", "size"},
		"an unknown kind":     {"apiVersion: apiserver.example/v1\nkind: Gadget\nmetadata: {name: w}\n", "Gadget"},
		"not an object":       {"just text\n", "read manifests"},
		"a file without kind": {"metadata: {name: w}\n", "Kind"},
	}
	for name, c := range refused {
		t.Run("refuses "+name, func(t *testing.T) {
			_, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{DryRun: true}, write(t, c.manifest))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestOutages(t *testing.T) {
	t.Parallel()
	cluster := apiserver.Own(t, apiserver.Options{})
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
	err := get(300 * time.Millisecond)
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
