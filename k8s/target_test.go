// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestAutopilotIsATargetWhenItNamesItsInstanceAndThereIsNoRds(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	ns := k.namespace
	c := k.connect(t, ns)
	run(t, c)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": autopilotv1.GroupVersion().String(), "kind": autopilotv1.Kind, "metadata": map[string]any{"name": "shop"},
		"spec": map[string]any{"apply": "Cloud", "instanceID": "instance-shop"},
	}}
	if _, err := k.rdsAutopilots(t).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is in the cache", func() bool { return c.Target(ns, "shop") != nil })
	a, ok := c.Autopilot(ns, "shop")
	live, err := c.LiveTarget(t.Context(), ns, "shop")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	found := c.TargetsByInstance("instance-shop")
	foundLive, err := c.LiveTargetsByInstance(t.Context(), "instance-shop", ns)
	if err != nil || len(found) != 1 || len(foundLive) != 1 {
		t.Fatalf("%d by the cache, %d live, %v", len(found), len(foundLive), err)
	}
	for i, target := range append(found, foundLive[0], live, c.Target(ns, "shop")) {
		if !target.NoRds || target.InstanceID != "instance-shop" || target.UID != a.UID || target.Wanted.VolumeGB != 0 {
			t.Errorf("%d: %+v", i, target)
		}
	}

	rds := k.createRds(t, c, "shop") // whose status.id is the same
	eventually(t, "the Rds stands for both", func() bool {
		found := c.TargetsByInstance("instance-shop")
		return len(found) == 1 && !found[0].NoRds && c.Target(ns, "shop").UID == rds.UID
	})
	if foundLive, err = c.LiveTargetsByInstance(t.Context(), "instance-shop", ns); err != nil || len(foundLive) != 1 || foundLive[0].NoRds {
		t.Errorf("live: %+v, %v", foundLive, err)
	}
}
