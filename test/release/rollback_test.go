// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// laterChart returns the chart of a later version, whose definition has the field status.later.
func laterChart(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "chart")
	if err := os.CopyFS(dir, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	var crd map[string]any
	if err := yaml.Unmarshal(read(t, dir+"/files/rdsautopilots.yaml"), &crd); err != nil {
		t.Fatal(err)
	}
	const key = "autopilot.otc.mcsps.de/fields"
	annotations := crd["metadata"].(map[string]any)["annotations"].(map[string]any)
	n, err := strconv.Atoi(annotations[key].(string))
	if err != nil {
		t.Fatal(err)
	}
	annotations[key] = strconv.Itoa(n + 1)
	version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	path := []string{"schema", "openAPIV3Schema", "properties", "status", "properties", "later", "type"}
	if err := unstructured.SetNestedField(version, "string", path...); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir+"/files/rdsautopilots.yaml", text)
	run(t, command(t, nil, tool(t, "helm"), "package", dir, "--version", "9.0.0", "--app-version", "v9.0.0", "--destination", dir))
	return dir + "/rds-autopilot-9.0.0.tgz"
}

// TestRollbackKeepsTheNewerDefinition upgrades to a later version, rolls back and upgrades again. The version of this checkout is
// the older one. It reads and writes objects with a field that it does not know.
func TestRollbackKeepsTheNewerDefinition(t *testing.T) {
	r := newRelease(t, startWorld(t))
	r.removeDefinition()
	later := laterChart(t)
	r.helm("install", releaseName, "deploy/chart", "--values", r.values, "--set", "crds.guard=false,rbac.admissionPolicy=true") // as versions before the guard
	r.helm("upgrade", releaseName, later, "--values", r.values, "--set", "rbac.admissionPolicy=true")
	db := database(t, r.w, "shop", "my-rds", false)
	waitUntil(t, "the definition is served", func(context.Context) (bool, error) {
		err := db.CreateAutopilot(world.Within(t), `{}`)
		return err == nil, err
	})
	autopilots := r.admin.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace("shop")
	waitUntil(t, "the later version writes its field", func(ctx context.Context) (bool, error) {
		stored, err := autopilots.Patch(ctx, "my-rds", types.MergePatchType, []byte(`{"status":{"later":"kept"}}`), metav1.PatchOptions{}, "status")
		return err == nil && laterOf(stored) == "kept", err
	})

	waitUntil(t, "the API server has read the guard", func(ctx context.Context) (bool, error) {
		fewer := []byte(`{"metadata":{"annotations":{"autopilot.otc.mcsps.de/fields":"0"}}}`)
		_, err := r.definitions().Patch(ctx, definition, types.MergePatchType, fewer, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsInvalid(err) {
			return true, nil
		}
		return false, err
	})
	text := failedOutput(t, command(t, r.helmEnv(), tool(t, "helm"), "--namespace", releaseName, "rollback", releaseName, "1"))
	if !strings.Contains(text, "The newer definition stays") {
		t.Errorf("helm rollback prints %s", text)
	}
	if !r.definitionHas("later:") {
		t.Error("helm rollback has replaced the definition by the older one")
	}
	deployments := r.admin.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(releaseName)
	deployment, err := deployments.Get(world.Within(t), releaseName, metav1.GetOptions{})
	if err != nil || deployment.GetLabels()["app.kubernetes.io/version"] == "v9.0.0" {
		t.Errorf("the Deployment is still the later version's: %v", err)
	}

	older := r.serve() // under the policy that limits it to two fields
	waitArmed(t, db)
	if err := db.SetWorkload(simcloud.Workload{UsedGB: 33}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.WaitRds(world.Within(t), "the older version grows it", func(rds *otcv1.Rds) bool { return rds.Spec.VolumeSize == 50 }); err != nil {
		t.Fatal(err)
	}
	_, err = db.WaitAutopilot(world.Within(t), "the older version records it", func(a *v1alpha1.RdsAutopilot) bool { return len(a.Status.Changes) > 0 })
	if err != nil {
		t.Fatal(err)
	}
	stop(t, older)

	r.helm("upgrade", releaseName, later, "--values", r.values)
	stored, err := autopilots.Get(world.Within(t), "my-rds", metav1.GetOptions{})
	if err != nil || laterOf(stored) != "kept" {
		t.Errorf("the later version reads %q again, %v", laterOf(stored), err)
	}
}

func laterOf(a *unstructured.Unstructured) string {
	if a == nil {
		return ""
	}
	text, _, _ := unstructured.NestedString(a.Object, "status", "later")
	return text
}
