// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mcsps/rds-autopilot/autopilot"
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
	for i, target := range []*autopilot.Target{live, c.Target(ns, "shop")} {
		if !target.NoRds || target.InstanceID != "instance-shop" || target.UID != a.UID || target.Wanted.VolumeGB != 0 {
			t.Errorf("%d: %+v", i, target)
		}
	}

	rds := k.createRds(t, c, "shop")
	eventually(t, "the Rds stands for both", func() bool { return c.Target(ns, "shop").UID == rds.UID })
}
