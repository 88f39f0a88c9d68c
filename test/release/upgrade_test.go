// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// removeDefinition removes the definition that a world begins with, so that Helm makes it.
func (r *release) removeDefinition() {
	r.t.Helper()
	definitions := r.admin.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	waitUntil(r.t, "the definition is gone", func(ctx context.Context) (bool, error) {
		err := definitions.Delete(ctx, "rdsautopilots.autopilot.otc.mcsps.de", metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// withoutTag is the chart to upgrade from for as long as no version is tagged.
const withoutTag = "e901394c496d9fee7122a84c30c9525f76688f3c"

// olderChart returns the folder with the chart of the newest tag before this version.
func olderChart(t *testing.T) string {
	t.Helper()
	ref, dir := withoutTag, t.TempDir()
	if tags := strings.Fields(run(t, command(t, nil, "git", "tag", "--no-contains", "HEAD", "--sort=-v:refname", "--list", "v*"))); len(tags) > 0 {
		ref = tags[0]
	}
	run(t, command(t, nil, "bash", "-eo", "pipefail", "-c", "git archive "+ref+" deploy/chart | tar -x -C "+dir))
	return dir + "/deploy/chart"
}

// TestInstallUpgradeOffUninstall runs the whole life of a release, from an older chart on, with the binary under the rights of the
// chart. It is also the smoke test of make test-versions.
func TestInstallUpgradeOffUninstall(t *testing.T) {
	r := newRelease(t, startWorld(t))
	w := r.w
	r.removeDefinition()

	r.helm("install", releaseName, olderChart(t), "--values", r.values)
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
	second := r.serve()
	stop(t, first)
	waitArmed(t, asked, byHand)
	if err := asked.SetWorkload(simcloud.Workload{UsedGB: 33}); err != nil {
		t.Fatal(err)
	}
	grown, err := asked.WaitAutopilot(world.Within(t), "the growth is completed", func(a *v1alpha1.RdsAutopilot) bool {
		return len(a.Status.Changes) > 0 && a.Status.Changes[0].State == v1alpha1.StateCompleted
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

	another := command(t, r.helmEnv(), tool(t, "helm"), "install", "another", "deploy/chart", "--namespace", releaseName, "--values", r.values)
	if out, err := another.CombinedOutput(); err == nil || !strings.Contains(string(out), `PodDisruptionBudget "rds-autopilot"`) {
		t.Errorf("a second release in the namespace: %v, %s", err, out)
	}

	r.helm("upgrade", releaseName, "deploy/chart", "--values", r.values, "--set-string", "mode=Off")
	third := r.serve()
	stop(t, second)
	waitNothingLeft(t, w)
	stop(t, third)

	r.helm("uninstall", releaseName, "--wait")
	if diff := cmp.Diff(installed, r.uids()); diff != "" {
		t.Errorf("after the uninstallation (-before +after):\n%s", diff)
	}
}
