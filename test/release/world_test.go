// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

var worlds world.Shared

// startWorld starts a world with an API server of its own, and without the service.
func startWorld(t *testing.T) *world.World {
	t.Helper()
	level.Long(t)
	apiserver.NeedReal(t)
	return worlds.StartAlone(t, world.Options{})
}

// kubeconfigOf returns the path of a kubeconfig of a ServiceAccount.
func kubeconfigOf(t *testing.T, w *world.World, namespace, name string) string {
	t.Helper()
	config, err := w.Kube.ServiceAccountConfig(world.Within(t), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), name)
	if err := apiserver.WriteKubeconfig(kubeconfig, config); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// stop stops the service, and fails the test if the API server has forbidden it something.
func stop(t *testing.T, p *world.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), world.Patience)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Errorf("stop the service: %v", err)
	}
	for _, l := range p.Lines() {
		if strings.Contains(l.Raw, "forbidden") {
			t.Error(l.Raw)
		}
	}
}

// database adds a database whose volume is a quarter full.
func database(t *testing.T, w *world.World, namespace, name string, autopilot bool) *world.DB {
	t.Helper()
	db, err := w.AddDatabase(world.Within(t), world.Database{
		Namespace: namespace, Name: name, Flavor: "rds.mysql.n1.large.4", VolumeGB: 40, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: autopilot,
	})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// cloudObjects returns the names of all topics, subscriptions and rules in the cloud.
func cloudObjects(w *world.World) (names []string) {
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

// waitUntil fails the test if a condition does not become true in time.
func waitUntil(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := world.Eventually(world.Within(t), what, done); err != nil {
		t.Fatal(err)
	}
}

func waitArmed(t *testing.T, databases ...*world.DB) {
	t.Helper()
	for _, db := range databases {
		if _, err := db.WaitAutopilot(world.Within(t), "it is armed", world.Armed); err != nil {
			t.Fatal(err)
		}
	}
}

// waitNothingLeft waits until the cloud has no topic, subscription and rule.
func waitNothingLeft(t *testing.T, w *world.World) {
	t.Helper()
	waitUntil(t, "nothing is left in the cloud", func(context.Context) (bool, error) {
		if left := cloudObjects(w); len(left) > 0 {
			return false, fmt.Errorf("%q", left)
		}
		return true, nil
	})
}

// clients returns both clients of an access.
func clients(t *testing.T, config *rest.Config) (client *kubernetes.Clientset, objects dynamic.Interface) {
	t.Helper()
	client, err1 := kubernetes.NewForConfig(config)
	objects, err2 := dynamic.NewForConfig(config)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return client, objects
}
