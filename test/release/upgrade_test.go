// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// chartBefore returns a folder with the newest chart in the history that differs from the present one. Without a history it has
// the present one.
func chartBefore(t *testing.T) string {
	t.Helper()
	before := t.TempDir()
	commits, err := command(t, nil, "git", "log", "--format=%H", "-n", "50", "--", "deploy/chart").Output()
	if err != nil {
		t.Logf("there is no history: %v", err)
	}
	for commit := range strings.FieldsSeq(string(commits)) {
		if command(t, nil, "git", "diff", "--quiet", commit, "--", "deploy/chart").Run() != nil {
			archive := tempFile(t, "chart.tar", run(t, command(t, nil, "git", "archive", commit, "deploy/chart")))
			run(t, command(t, nil, "tar", "-xf", archive, "-C", before))
			t.Logf("the upgrade is from the chart of %s", commit)
			return filepath.Join(before, "deploy", "chart")
		}
	}
	if err := os.CopyFS(before, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	return before
}

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

// useOlderDefinition gives a chart a definition of RdsAutopilot without the column MODE. It has all present fields, because the
// tests run the present binary, which needs them.
func useOlderDefinition(t *testing.T, dir string) {
	t.Helper()
	present := string(read(t, chart+"/files/rdsautopilots.yaml"))
	older := strings.Replace(present, "    - jsonPath: .status.effectiveMode\n      name: MODE\n      type: string\n", "", 1)
	if older == present {
		t.Fatal("no column MODE")
	}
	writeFile(t, dir+"/files/rdsautopilots.yaml", []byte(older))
}

// definition is the CRD of RdsAutopilot.
const definition = "rdsautopilots.autopilot.otc.mcsps.de"

func (r *release) definitions() dynamic.ResourceInterface {
	return r.admin.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

// removeDefinition removes the definition that a world begins with, so that Helm makes it.
func (r *release) removeDefinition() {
	r.t.Helper()
	r.delete(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "", definition)
}

// definitionHas reports whether the definition in the cluster contains a text as Go prints it.
func (r *release) definitionHas(text string) bool {
	r.t.Helper()
	crd, err := r.definitions().Get(world.Within(r.t), definition, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Contains(fmt.Sprint(crd.Object["spec"]), text)
}

// TestInstallUpgradeOffUninstall runs the whole life of a release, with the binary under the rights of the chart. It is also the
// smoke test of make test-versions.
func TestInstallUpgradeOffUninstall(t *testing.T) {
	r := newRelease(t, startWorld(t))
	w := r.w
	before := chartBefore(t)
	useOlderDefinition(t, before)
	r.removeDefinition()

	r.helm("install", releaseName, before, "--values", r.values)
	if r.definitionHas("name:MODE") {
		t.Fatal("the chart before has the new definition")
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
	if !r.definitionHas("name:MODE") {
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

	// A second installation serves the same objects. It is uninstalled while they need it.
	r.helm("install", releaseName, "deploy/chart", "--values", r.values)
	fourth := r.serve()
	waitArmed(t, asked, byHand)
	if diff := cmp.Diff(installed, r.uids()); diff != "" {
		t.Errorf("installed again (-before +after):\n%s", diff)
	}
	r.helm("uninstall", releaseName, "--wait")
	stop(t, fourth)
	r.delete(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource), "shop", "asked")
	r.delete(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource), "shop", "by-hand")

	// The third one finds what the second one has left in the cloud.
	r.helm("install", releaseName, "deploy/chart", "--values", r.values)
	fifth := r.serve()
	waitNothingLeft(t, w)
	stop(t, fifth)
}

// delete deletes an object and waits until it is gone. The API server itself needs a moment for a definition.
func (r *release) delete(resource schema.GroupVersionResource, namespace, name string) {
	r.t.Helper()
	in := r.admin.Resource(resource).Namespace(namespace)
	waitUntil(r.t, resource.Resource+" "+namespace+"/"+name+" is gone", func(ctx context.Context) (bool, error) {
		err := in.Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// TestArgoCDAndFluxDeleteAllObjectsInAnyOrder deletes all objects of the chart at once, with the definition and while the
// service runs, as these tools do. Then it applies them again.
func TestArgoCDAndFluxDeleteAllObjectsInAnyOrder(t *testing.T) {
	r := newRelease(t, startWorld(t))
	file := tempFile(t, "rendered.yaml", template(t, "--values", r.values))
	objects, err := apiserver.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	apply := func() *world.Process {
		t.Helper()
		if err := r.w.Apply(world.Within(t), file); err != nil {
			t.Fatal(err)
		}
		return r.serve()
	}
	p := apply()
	db := database(t, r.w, "shop", "my-rds", true)
	waitArmed(t, db)
	for _, i := range rand.Perm(len(objects)) {
		kind := objects[i].GroupVersionKind()
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		r.delete(resource, objects[i].GetNamespace(), objects[i].GetName())
	}
	stop(t, p)
	p = apply() // the definition has taken the RdsAutopilot along, and the operator has dropped spec.autopilot
	waitNothingLeft(t, r.w)
	stop(t, p)
}
