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
)

// The tests of this package run on a real API server, as the ServiceAccount with the rights that we ship.

var crds = []string{"../deploy/crds/rds.yaml", "../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"}

var shared = apiserver.Shared{Options: apiserver.Options{CRDs: crds}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// own is the service's namespace, with the rights that we ship.
var own struct {
	once      sync.Once
	namespace string
}

func ownNamespace(t *testing.T) string {
	t.Helper()
	own.once.Do(func() {
		cluster := shared.Cluster(t)
		own.namespace = cluster.Namespace(t)
		if _, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{Namespace: own.namespace}, "../deploy/rbac.yaml"); err != nil {
			t.Fatal(err)
		}
		databases := admin(t, serviceAccount(t, own.namespace), otcv1.GroupVersion(), otcv1.Resource, metav1.NamespaceAll)
		eventually(t, "the rights are in force", func() bool {
			_, err := databases.List(t.Context(), metav1.ListOptions{Limit: 1})
			return err == nil
		})
	})
	return own.namespace
}

// asShipped returns access as the ServiceAccount that deploy makes.
func asShipped(t *testing.T) *rest.Config {
	t.Helper()
	return serviceAccount(t, ownNamespace(t))
}

func serviceAccount(t *testing.T, namespace string) *rest.Config {
	t.Helper()
	cfg, err := shared.Cluster(t).ServiceAccountConfig(t.Context(), namespace, "rds-autopilot")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// patience is for the slowest of machines; no test waits for it.
const patience = 5 * time.Minute

func connect(t *testing.T, namespaces ...string) *k8s.Cluster {
	t.Helper()
	c, err := k8s.Connect(t.Context(), asShipped(t), k8s.Options{Version: "test", Namespaces: namespaces, Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run keeps the caches until the test ends.
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
	if err := c.WaitForSync(waiting); err != nil {
		t.Fatal(err)
	}
	if !c.HasSynced() {
		t.Error("not synced after waiting for it")
	}
}

// eventually waits for what another process does.
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

// admin is another writer: a person, the operator.
func admin(t *testing.T, cfg *rest.Config, gv schema.GroupVersion, resource, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(gv.WithResource(resource)).Namespace(namespace)
}

func rdss(t *testing.T, namespace string) dynamic.ResourceInterface {
	return admin(t, shared.Cluster(t).Config(), otcv1.GroupVersion(), otcv1.Resource, namespace)
}

func rdsAutopilots(t *testing.T, namespace string) dynamic.ResourceInterface {
	return admin(t, shared.Cluster(t).Config(), autopilotv1.GroupVersion(), autopilotv1.Resource, namespace)
}

const secret = "p4ssw0rd"

// database is an Rds as people write it: with passwords, and with kubectl's copy of it all.
func database(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "otc.mcsps.de/v1alpha1",
		"kind":       "Rds",
		"metadata": map[string]any{
			"name":   name,
			"labels": map[string]any{"team": "a"},
			"annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"password":"` + secret + `"}}`,
				"autopilot.otc.mcsps.de/note":                      "ours",
			},
		},
		"spec": map[string]any{
			"autopilot":        true,
			"availabilityzone": "eu-de-01",
			"backupkeepdays":   int64(7),
			"backupstarttime":  "01:00-02:00",
			"databases":        []any{"shop"},
			"datastoretype":    "MySQL",
			"datastoreversion": "8.0",
			"flavorref":        "rds.mysql.c2.medium",
			"password":         secret,
			"port":             "3306",
			"users":            []any{map[string]any{"name": "app", "host": "%", "password": secret, "privileges": []any{"GRANT ALL"}}},
			"volumesize":       int64(40),
			"volumetype":       "COMMON",
		},
		"status": map[string]any{"id": "instance-" + name, "status": "ACTIVE"},
		"later":  map[string]any{"unknown": []any{1.5, nil, "x"}}, // the schema keeps what it does not know
	}}
}

// createRds makes an Rds as the operator's user and returns its target as this package reads it.
func createRds(t *testing.T, c *k8s.Cluster, namespace, name string) *autopilot.Target {
	t.Helper()
	if _, err := rdss(t, namespace).Create(t.Context(), database(name), metav1.CreateOptions{FieldManager: "operator"}); err != nil {
		t.Fatal(err)
	}
	target, err := c.LiveTarget(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// createAutopilot makes the RdsAutopilot of a new Rds.
func createAutopilot(t *testing.T, c *k8s.Cluster, namespace, name string) *autopilotv1.RdsAutopilot {
	t.Helper()
	if err := c.CreateAutopilot(t.Context(), createRds(t, c, namespace, name)); err != nil {
		t.Fatal(err)
	}
	a, err := c.LiveAutopilot(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
