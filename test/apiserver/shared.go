// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Test is the part of *testing.T that is needed, so that a program that imports this package does not import testing.
type Test interface {
	Helper()
	Name() string
	Context() context.Context
	Cleanup(func())
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Skip(args ...any)
}

// KubeVariable decides whether tests run on a real API server: "real", or "memory" and unset for tests without one.
// Command run sets it to "real".
const KubeVariable = "KUBE"

// Real reports whether tests run on a real API server.
func Real() bool { return os.Getenv(KubeVariable) == "real" }

// NeedReal skips the test unless it runs on a real API server.
func NeedReal(t Test) {
	t.Helper()
	if !Real() {
		t.Skip("needs a real API server: make test-kube, or KUBE=real go test")
	}
}

// Variable is the environment variable with the kubeconfig of a cluster for the tests of all packages. Command run sets it.
const Variable = "KUBETEST_KUBECONFIG"

// Own starts a cluster for one test that stops it or changes cluster-wide objects. The cluster ends with the test.
func Own(t Test, o Options) *Cluster {
	t.Helper()
	NeedReal(t)
	cluster, err := Start(t.Context(), o)
	if err != nil {
		t.Fatalf("apiserver: %v", err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Errorf("apiserver: %v", err)
		}
	})
	return cluster
}

// Shared is one cluster for all tests of a package: the one that Variable names, or else one that the first test starts. A test
// must use a namespace of its own and must not change cluster-wide objects, because other packages may use the cluster too.
type Shared struct {
	Options Options

	once    sync.Once
	cluster *Cluster
	err     error

	memoryOnce sync.Once
	memory     Kubernetes // nil unless a test has called Kubernetes
	memoryErr  error
}

// Cluster returns the cluster. It skips the test unless tests run on a real API server. It fails the test if the cluster could not
// be started.
func (s *Shared) Cluster(t Test) *Cluster {
	t.Helper()
	NeedReal(t)
	// Not the test's context: the others use the cluster after this test has ended, and fail alike if it does not start.
	s.once.Do(func() {
		ctx := context.WithoutCancel(t.Context())
		if file := os.Getenv(Variable); file != "" {
			s.cluster, s.err = attach(ctx, file, s.Options.CRDs)
		} else {
			s.cluster, s.err = Start(ctx, s.Options)
		}
	})
	if s.err != nil {
		t.Fatalf("apiserver: %v", s.err)
	}
	return s.cluster
}

// attach returns a cluster that another process starts and stops. It applies the missing definitions.
func attach(ctx context.Context, kubeconfig string, crds []string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("the cluster of %s: %w", Variable, err)
	}
	config.QPS = -1 // as Start has it
	c := &Cluster{config: config}
	if _, err := c.Apply(ctx, ApplyOptions{}, crds...); err != nil {
		return nil, fmt.Errorf("the cluster of %s: %w", Variable, err)
	}
	return c, nil
}

// Main runs the tests, stops the cluster if one was started, and returns the exit code for TestMain.
func (s *Shared) Main(m interface{ Run() int }) int {
	code := m.Run()
	if s.memory != nil {
		_ = s.memory.Stop() // never fails
	}
	s.once.Do(func() { s.err = errors.New("the tests are over") })
	if s.cluster == nil {
		return code
	}
	if err := s.cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		return max(code, 1)
	}
	return code
}

// Namespace creates a namespace for a test and returns its name. It exists until the cluster stops.
func (c *Cluster) Namespace(t Test) string { return namespaceOf(t, c.config) }

// NewNamespace creates a namespace and returns its name, which begins with prefix.
func (c *Cluster) NewNamespace(ctx context.Context, prefix string) (string, error) {
	return newNamespace(ctx, c.config, prefix)
}

func namespaceOf(t Test, config *rest.Config) string {
	t.Helper()
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(t.Name()), "-")
	made, err := newNamespace(t.Context(), config, strings.Trim(name[:min(len(name), 40)], "-")+"-")
	if err != nil {
		t.Fatalf("%v", err)
	}
	return made
}

func newNamespace(ctx context.Context, config *rest.Config, prefix string) (string, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("client: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	made, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	return made.Name, nil
}
