// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// uids returns the uids of the definitions and of the databases, which must outlive the release.
func (r *release) uids() map[string]string {
	r.t.Helper()
	uids := map[string]string{}
	for _, resource := range []schema.GroupVersionResource{
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		{Group: "otc.mcsps.de", Version: "v1alpha1", Resource: "rdss"},
		{Group: "autopilot.otc.mcsps.de", Version: "v1alpha1", Resource: "rdsautopilots"},
	} {
		list, err := r.admin.Resource(resource).List(world.Within(r.t), metav1.ListOptions{})
		if err != nil {
			r.t.Fatal(err)
		}
		for _, item := range list.Items {
			uids[fmt.Sprintf("%s %s/%s", item.GetKind(), item.GetNamespace(), item.GetName())] = string(item.GetUID())
		}
	}
	return uids
}

// olderChart returns a folder with the chart whose definition of RdsAutopilot lacks the column MODE. It has all present fields, because
// the tests run the present binary, which needs them.
func olderChart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	present := string(read(t, chart+"/files/rdsautopilots.yaml"))
	older := strings.Replace(present, "    - jsonPath: .status.effectiveMode\n      name: MODE\n      type: string\n", "", 1)
	if older == present {
		t.Fatal("no column MODE")
	}
	writeFile(t, dir+"/files/rdsautopilots.yaml", []byte(older))
	return dir
}

// definition is the CRD of RdsAutopilot.
const definition = "rdsautopilots.autopilot.otc.mcsps.de"

func (r *release) definitions() dynamic.ResourceInterface {
	return r.admin.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

// removeDefinition removes the definition that a world begins with, so that Helm makes it.
func (r *release) removeDefinition() {
	r.t.Helper()
	waitUntil(r.t, "the definition is gone", func(ctx context.Context) (bool, error) {
		err := r.definitions().Delete(ctx, definition, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// hasColumnMode reports whether the definition in the cluster has the column MODE.
func (r *release) hasColumnMode() bool {
	r.t.Helper()
	crd, err := r.definitions().Get(world.Within(r.t), definition, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Contains(fmt.Sprint(crd.Object["spec"]), "name:MODE")
}

// TestInstallUpgradeOffUninstall runs the whole life of a release, with the binary under the rights of the chart. It is also the
// smoke test of make test-versions.
func TestInstallUpgradeOffUninstall(t *testing.T) {
	r := newRelease(t, startWorld(t))
	w := r.w
	r.removeDefinition()

	r.helm("install", releaseName, olderChart(t), "--values", r.values)
	if r.hasColumnMode() {
		t.Fatal("the older chart has the new definition")
	}
	byHand := database(t, w, "shop", "by-hand", false)
	waitUntil(t, "the definition is served", func(context.Context) (bool, error) {
		err := byHand.CreateAutopilot(world.Within(t), `{"mode":"Recommend"}`)
		return err == nil, err
	})
	first := r.serve()
	asked := database(t, w, "shop", "asked", true) // by its Rds
	waitArmed(t, asked, byHand)
	installed := r.uids()
	if len(installed) != 6 || len(cloudObjects(w)) != 8 {
		t.Fatalf("%v, and in the cloud %q", slices.Sorted(maps.Keys(installed)), cloudObjects(w))
	}

	r.helm("upgrade", releaseName, "deploy/chart", "--values", r.values)
	if !r.hasColumnMode() {
		t.Error("the upgrade left the old definition")
	}
	second := r.serve()
	stop(t, first)
	waitArmed(t, asked, byHand)
	if err := asked.SetWorkload(simcloud.Workload{UsedGB: 33}); err != nil {
		t.Fatal(err)
	}
	grown, err := asked.WaitAutopilot(world.Within(t), "the growth is completed", func(a *v1alpha1.RdsAutopilot) bool {
		return len(a.Status.Changes) > 0 && len(a.Status.PendingChanges()) == 0
	})
	if err != nil {
		t.Fatal(err)
	}
	if change := grown.Status.Changes[0]; change.Kind != v1alpha1.KindVolume || asked.Instance().VolumeGB != 50 {
		t.Errorf("%+v, and the instance has %d GB, want 50", change, asked.Instance().VolumeGB)
	}
	if diff := cmp.Diff(installed, r.uids()); diff != "" {
		t.Errorf("after the upgrade (-before +after):\n%s", diff)
	}
	if n := len(cloudObjects(w)); n != 8 {
		t.Errorf("after the upgrade %d things are in the cloud: %q", n, cloudObjects(w))
	}

	r.helm("rollback", releaseName, "1")
	r.helm("upgrade", releaseName, "deploy/chart", "--values", r.values, "--set-string", "mode=Off")
	third := r.serve()
	stop(t, second)
	waitNothingLeft(t, w)
	stop(t, third)

	r.helm("uninstall", releaseName, "--wait")
	if diff := cmp.Diff(installed, r.uids()); diff != "" {
		t.Errorf("after the uninstallation (-before +after):\n%s", diff)
	}
	for _, removed := range []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "", Version: "v1", Resource: "services"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	} {
		list, err := r.admin.Resource(removed).List(world.Within(t), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + releaseName})
		if err != nil || len(list.Items) > 0 {
			t.Errorf("%s after the uninstallation: %v, %v", removed.Resource, list, err)
		}
	}
}
