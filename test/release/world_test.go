// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// startWorld starts a world of its own for a test, without the service, and compiles the service.
func startWorld(t *testing.T) *world.World {
	t.Helper()
	return startWorldOf(t, "")
}

// startWorldOf starts a world for a binary of the service that exists. Empty compiles it.
func startWorldOf(t *testing.T, binary string) *world.World {
	t.Helper()
	level.Long(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	w, err := world.Start(ctx, world.Options{Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := w.Build(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

// as writes the access of a ServiceAccount to a file.
func as(t *testing.T, w *world.World, namespace, name string) (config *rest.Config, kubeconfig string) {
	t.Helper()
	config, err := w.Kube.ServiceAccountConfig(within(t), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig = filepath.Join(t.TempDir(), name)
	if err := apiserver.WriteKubeconfig(kubeconfig, config); err != nil {
		t.Fatal(err)
	}
	return config, kubeconfig
}

func stop(t *testing.T, p *world.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Errorf("stop the service: %v", err)
	}
	if t.Failed() {
		for _, l := range p.Lines() {
			t.Log(l.Raw)
		}
	}
}

// database is one whose volume is far from full.
func database(t *testing.T, w *world.World, namespace, name string, autopilot bool) *world.DB {
	t.Helper()
	db, err := w.AddDatabase(within(t), world.Database{
		Namespace: namespace, Name: name, Flavor: "rds.mysql.n1.large.4", VolumeGB: 40, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: autopilot,
	})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// inTheCloud are the names of all that the service has made there.
func inTheCloud(w *world.World) (names []string) {
	for _, x := range w.Cloud.Topics() {
		names = append(names, "topic "+x.Name)
	}
	for _, x := range w.Cloud.Subscriptions() {
		names = append(names, "subscription "+x.TopicURN)
	}
	for _, x := range w.Cloud.Rules() {
		names = append(names, "rule "+x.Name)
	}
	return names
}

// realCluster returns the real API server of a world.
func realCluster(t *testing.T, w *world.World) *apiserver.Cluster {
	t.Helper()
	c, ok := w.Kube.(*apiserver.Cluster)
	if !ok {
		t.Fatalf("the world has %T, want a real API server", w.Kube)
	}
	return c
}

// apply applies objects as a person would.
func apply(t *testing.T, w *world.World, objects ...*unstructured.Unstructured) {
	t.Helper()
	var text strings.Builder
	for _, object := range objects {
		content, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "---\n%s\n", content)
	}
	if err := w.Apply(within(t), write(t, "objects.yaml", text.String())); err != nil {
		t.Fatal(err)
	}
}
