// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/level"
	"github.com/mcsps/rds-autopilot/test/world"
)

// TestUpgradeFollowsAnEmergencyStop patches the Deployment as the commands of docs/stop.md do, and then upgrades as in
// docs/upkeep.md. The cluster has no kubelet and no controllers, so no pod starts.
func TestUpgradeFollowsAnEmergencyStop(t *testing.T) {
	level.Long(t)
	cluster := shared.Cluster(t)
	namespace := cluster.Namespace(t)
	kubeconfig := filepath.Join(t.TempDir(), "admin")
	if err := apiserver.WriteKubeconfig(kubeconfig, cluster.Config()); err != nil {
		t.Fatal(err)
	}
	client, _ := clients(t, cluster.Config())
	deployments := client.AppsV1().Deployments(namespace)
	env := []string{"KUBECONFIG=" + kubeconfig, "HOME=" + t.TempDir()}
	// helm returns a command with the chart. It leaves the definition out, which other tests use.
	helm := func(verb string, more ...string) *exec.Cmd {
		args := []string{
			verb, releaseName, "deploy/chart", "--namespace", namespace, "--values", "deploy/chart/ci/default-values.yaml", "--set", "crds.enabled=false",
		}
		return command(t, env, tool(t, "helm"), append(args, more...)...)
	}
	patch := func(manager, patch string, subresources ...string) {
		t.Helper()
		_, err := deployments.Patch(world.Within(t), releaseName, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresources...)
		if err != nil {
			t.Fatal(err)
		}
	}
	checkState := func(want string) {
		t.Helper()
		deployment, err := deployments.Get(world.Within(t), releaseName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		variables := deployment.Spec.Template.Spec.Containers[0].Env
		mode := slices.IndexFunc(variables, func(e corev1.EnvVar) bool { return e.Name == "RDS_AUTOPILOT_MODE" })
		if got := fmt.Sprint(*deployment.Spec.Replicas, " ", variables[mode].Value); got != want {
			t.Errorf("the Deployment has replicas and mode %s, want %s", got, want)
		}
	}

	run(t, helm("install"))
	patch("kubectl-set", `{"spec":{"template":{"spec":{"containers":[{"name":"rds-autopilot","env":[{"name":"RDS_AUTOPILOT_MODE","value":"Recommend"}]}]}}}}`)
	patch("kubectl", `{"spec":{"replicas":0}}`, "scale")
	checkState("0 Recommend")
	if text := failedOutput(t, helm("upgrade")); !strings.Contains(text, `with "kubectl`) {
		t.Errorf("without --force-conflicts, Helm prints %s", text)
	}
	run(t, helm("upgrade", "--force-conflicts"))
	checkState("2 Auto")
	run(t, command(t, env, tool(t, "helm"), "uninstall", releaseName, "--namespace", namespace))
}
