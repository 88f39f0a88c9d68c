// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

var crds = []string{"../deploy/crds/rds.yaml", "../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"}

var shared = apiserver.Shared{Options: apiserver.Options{CRDs: crds}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// must fails the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kube is a Kubernetes with a namespace for one test.
type kube struct {
	admin     *rest.Config // for another writer: a person, the operator
	service   *rest.Config // for this service
	namespace string
	own       string // the namespace of the service
}

// newKube returns a Kubernetes in memory or, with KUBE=real, a real API server.
func newKube(t *testing.T) kube {
	t.Helper()
	if apiserver.Real() {
		return realKube(t)
	}
	return newKubeInMemory(t)
}

func newKubeInMemory(t *testing.T) kube {
	t.Helper()
	server, err := simkube.New(simkube.Options{CRDs: crds})
	must(t, err)
	return kube{server.Config(), server.Config(), "default", "default"}
}

// installation is the namespace of the service on the real API server, with the rights of deploy/rbac.yaml.
var installation struct {
	once      sync.Once
	namespace string
}

// realKube returns a real API server, on which the service has the rights of deploy/rbac.yaml and no others.
func realKube(t *testing.T) kube {
	t.Helper()
	cluster := shared.Cluster(t)
	serviceAccount := func() *rest.Config {
		config, err := cluster.ServiceAccountConfig(t.Context(), installation.namespace, "rds-autopilot")
		must(t, err)
		return config
	}
	installation.once.Do(func() {
		installation.namespace = cluster.Namespace(t)
		if _, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{Namespace: installation.namespace}, "../deploy/rbac.yaml"); err != nil {
			t.Fatal(err)
		}
		databases := kube{admin: serviceAccount()}.rdss(t)
		eventually(t, "the rights are in force", func() bool {
			_, err := databases.List(t.Context(), metav1.ListOptions{Limit: 1})
			return err == nil
		})
	})
	return kube{cluster.Config(), serviceAccount(), cluster.Namespace(t), installation.namespace}
}

// labels are those of everything that the service creates.
var labels = map[string]string{"example.com/team": "databases"}

// connect returns a connection of the service that watches these namespaces, or all.
func (k kube) connect(t *testing.T, namespaces ...string) *k8s.Cluster {
	t.Helper()
	c, err := k8s.Connect(t.Context(), k.service, k8s.Options{Version: "test", Namespaces: namespaces, Own: k.own, Labels: labels, Log: zap.NewNop()})
	must(t, err)
	return c
}

// as returns the other writer's client for a resource.
func (k kube) as(t *testing.T, gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(k.admin)
	must(t, err)
	return client.Resource(gvr)
}

func (k kube) rdss(t *testing.T) dynamic.ResourceInterface {
	return k.as(t, otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(k.namespace)
}

func (k kube) rdsAutopilots(t *testing.T) dynamic.ResourceInterface {
	return k.as(t, autopilotv1.GroupVersion().WithResource(autopilotv1.Resource)).Namespace(k.namespace)
}

// withNamespace returns the same Kubernetes with another namespace, which it creates.
func (k kube) withNamespace(t *testing.T, name string) kube {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	namespaces := k.as(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	if _, err := namespaces.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	k.namespace = name
	return k
}

// createRds creates an Rds as the operator's user, and returns its target as this package reads it.
func (k kube) createRds(t *testing.T, c *k8s.Cluster, name string) *autopilot.Target {
	t.Helper()
	if _, err := k.rdss(t).Create(t.Context(), database(t, name), metav1.CreateOptions{FieldManager: "operator"}); err != nil {
		t.Fatal(err)
	}
	target, err := c.LiveTarget(t.Context(), k.namespace, name)
	must(t, err)
	return target
}

// createAutopilot creates an Rds and its RdsAutopilot.
func (k kube) createAutopilot(t *testing.T, c *k8s.Cluster, name string) *autopilotv1.RdsAutopilot {
	t.Helper()
	must(t, c.CreateAutopilot(t.Context(), k.createRds(t, c, name)))
	return k.live(t, c, name)
}

// live returns the RdsAutopilot as the API server has it.
func (k kube) live(t *testing.T, c *k8s.Cluster, name string) *autopilotv1.RdsAutopilot {
	t.Helper()
	a, err := c.LiveAutopilot(t.Context(), k.namespace, name)
	must(t, err)
	return a
}

// patience is enough for the slowest of machines. No test waits for it.
const patience = 5 * time.Minute

// run fills the caches and keeps them until the test ends.
func run(t *testing.T, c *k8s.Cluster) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	waiting, done := context.WithTimeout(ctx, patience)
	defer done()
	must(t, c.WaitForSync(waiting))
	if !c.HasSynced() {
		t.Error("not synced after waiting for it")
	}
}

// eventually waits until another goroutine or process has done something.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}

const secret = "Change-me-1" // the password in deploy/examples/rds.yaml

// database returns an Rds as people write it: with passwords, kubectl's copy of the whole object, and unknown fields.
func database(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	objects, err := apiserver.Read("../deploy/examples/rds.yaml")
	must(t, err)
	rds := objects[0]
	rds.SetName(name)
	rds.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"password":"` + secret + `"}}`})
	rds.Object["spec"].(map[string]any)["users"] = []any{map[string]any{"name": "app", "password": secret}}
	rds.Object["status"] = map[string]any{"id": "instance-" + name, "status": "ACTIVE"}
	rds.Object["later"] = map[string]any{"unknown": []any{1.5, nil, "x"}}
	return rds
}
