// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

// Kubernetes is the API server of a test or of a world: a Cluster, or one in memory.
type Kubernetes interface {
	// Config returns access with all rights.
	Config() *rest.Config
	// ServiceAccountConfig returns access as a ServiceAccount. In memory it has all rights.
	ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error)
	// Namespace creates a namespace for a test and returns its name.
	Namespace(t Test) string
	// Grant applies a file with rights to a namespace. In memory there are no rights, so it does nothing.
	Grant(ctx context.Context, namespace, file string) error

	PauseAPIServer() error
	ResumeAPIServer() error
	Stop() error
}

// InMemory returns Kubernetes in memory with the definitions of the files. It is served over HTTP, so that a kubeconfig can
// name it.
func InMemory(ctx context.Context, crds []string) (Kubernetes, error) {
	server, err := simkube.New(simkube.Options{CRDs: crds})
	if err != nil {
		return nil, err
	}
	endpoint, err := server.Listen(ctx)
	return memory{endpoint}, err
}

// Kubernetes returns the cluster, or without KUBE=real an API server in memory, one for all tests of the package.
func (s *Shared) Kubernetes(t Test) Kubernetes {
	t.Helper()
	if Real() {
		return s.Cluster(t)
	}
	// Not the test's context: the others use the server after this test has ended.
	s.memoryOnce.Do(func() { s.memory, s.memoryErr = InMemory(context.WithoutCancel(t.Context()), s.Options.CRDs) })
	if s.memoryErr != nil {
		t.Fatalf("Kubernetes in memory: %v", s.memoryErr)
	}
	return s.memory
}

type memory struct{ *simkube.Endpoint }

func (m memory) Namespace(t Test) string { return namespaceOf(t, m.Config()) }

func (m memory) Grant(context.Context, string, string) error { return nil }

// Grant applies a file with rights to a namespace.
func (c *Cluster) Grant(ctx context.Context, namespace, file string) error {
	if _, err := c.Apply(ctx, ApplyOptions{Namespace: namespace}, file); err != nil {
		return fmt.Errorf("grant the rights of %s: %w", file, err)
	}
	return nil
}
