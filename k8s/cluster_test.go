// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"strings"
	"testing"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
)

func TestCacheOutlivesTheAPIServer(t *testing.T) {
	t.Parallel()
	cluster := apiserver.Own(t, apiserver.Options{})
	connect := func() (*k8s.Cluster, error) {
		return k8s.Connect(t.Context(), cluster.Config(), k8s.Options{Version: "test", Log: zap.NewNop()})
	}
	if _, err := connect(); err == nil || !strings.Contains(err.Error(), "CRD rdss.otc.mcsps.de is not installed") {
		t.Errorf("without CRDs: %v", err)
	}
	if _, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{}, crds[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(); err == nil || !strings.Contains(err.Error(), "CRD rdsautopilots.autopilot.otc.mcsps.de is not installed") {
		t.Errorf("with one CRD: %v", err)
	}
	if _, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{}, crds[1]); err != nil {
		t.Fatal(err)
	}
	c, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	var told heard[*autopilot.Target]
	if err := c.OnTarget(told.hear); err != nil {
		t.Fatal(err)
	}
	databases := admin(t, cluster.Config(), otcv1.GroupVersion(), otcv1.Resource, "default")
	if _, err := databases.Create(t.Context(), database("shop"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	run(t, c)

	if err := cluster.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(); err == nil || !strings.Contains(err.Error(), "reach the Kubernetes API at https://127.0.0.1") {
		t.Errorf("API server away: %v", err)
	}
	if _, err := c.LiveTarget(t.Context(), "default", "shop"); err == nil {
		t.Error("a live read without an API server")
	}
	if c.Target("default", "shop") == nil {
		t.Error("the cache forgot the database")
	}
	if err := cluster.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := databases.Patch(t.Context(), "shop", types.MergePatchType, []byte(`{"spec":{"volumesize":70}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cache follows again", func() bool {
		target := c.Target("default", "shop")
		return target != nil && target.Wanted.VolumeGB == 70
	})
	eventually(t, "the callback was told", func() bool { return len(told.all()) >= 2 })
	for _, pair := range told.all() {
		if pair[1] == nil {
			t.Error("told that the database is gone")
		}
	}
}

func TestAnOlderCRDDropsNoIntent(t *testing.T) {
	t.Parallel()
	cluster := apiserver.Own(t, apiserver.Options{CRDs: crds})
	c, err := k8s.Connect(t.Context(), cluster.Config(), k8s.Options{Version: "test", Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CreateAutopilot(t.Context(), &autopilot.Target{Name: "shop", Namespace: "default", UID: "1"}); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	definitions := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	const drop = `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/overtaken"}]`
	if _, err := definitions.Patch(t.Context(), "rdsautopilots.autopilot.otc.mcsps.de", types.JSONPatchType, []byte(drop),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the intent is refused", func() bool {
		a, err := c.LiveAutopilot(t.Context(), "default", "shop")
		if err != nil {
			t.Fatal(err)
		}
		now := metav1.NowMicro()
		with := a.Status
		with.ObservedGeneration++
		with.Overtaken = &autopilotv1.Intent{
			Kind: autopilotv1.KindFlavor, Metrics: []autopilotv1.Metric{autopilotv1.MetricCPU}, EvidenceTime: now, DecisionTime: now,
		}
		written, err := c.WriteStatus(t.Context(), a, with)
		if err == nil && written.Status.Overtaken == nil {
			t.Fatal("the intent was dropped without a word")
		}
		return err != nil && strings.Contains(err.Error(), "status.overtaken")
	})
}
