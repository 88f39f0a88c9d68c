// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"strings"
	"testing"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
)

func TestCacheKeepsItsObjectsWhileTheAPIServerIsAway(t *testing.T) {
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
	var seen calls[*autopilot.Target]
	if err := c.OnTarget(seen.add); err != nil {
		t.Fatal(err)
	}
	databases := kube{admin: cluster.Config(), namespace: "default"}.rdss(t)
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
	eventually(t, "the callback was called", func() bool { return len(seen.all()) >= 2 })
	for _, pair := range seen.all() {
		if pair[1] == nil {
			t.Error("the callback was called for a deletion")
		}
	}
}

func TestWriteStatusReturnsAnErrorWhenAnOlderCRDLacksTheField(t *testing.T) {
	t.Parallel()
	cluster := apiserver.Own(t, apiserver.Options{CRDs: crds})
	c, err := k8s.Connect(t.Context(), cluster.Config(), k8s.Options{Version: "test", Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CreateAutopilot(t.Context(), &autopilot.Target{Name: "shop", Namespace: "default", UID: "1"}); err != nil {
		t.Fatal(err)
	}
	definitions := kube{admin: cluster.Config()}.as(t, schema.GroupVersionResource{
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
			t.Fatal("the intent was dropped without an error")
		}
		return err != nil && strings.Contains(err.Error(), "status.overtaken")
	})
}
