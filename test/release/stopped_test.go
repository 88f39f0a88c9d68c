// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/level"
	"github.com/mcsps/rds-autopilot/test/world"
)

// helmIn runs Helm in a namespace of its own in the shared cluster. The cluster has no kubelet and no controllers, so no pod starts.
type helmIn struct {
	t         *testing.T
	namespace string
	env       []string
	client    *kubernetes.Clientset
}

func newHelmIn(t *testing.T) helmIn {
	t.Helper()
	level.Long(t)
	cluster := shared.Cluster(t)
	client, _ := clients(t, cluster.Config())
	kubeconfig := filepath.Join(t.TempDir(), "admin")
	if err := apiserver.WriteKubeconfig(kubeconfig, cluster.Config()); err != nil {
		t.Fatal(err)
	}
	return helmIn{t, cluster.Namespace(t), []string{"KUBECONFIG=" + kubeconfig, "HOME=" + t.TempDir()}, client}
}

// args returns the arguments of a command with the chart. It leaves the definition out, which other tests use.
func (h helmIn) args(command string, more ...string) []string {
	return append([]string{command, releaseName, "deploy/chart", "--namespace", h.namespace, "--values", "deploy/chart/ci/default-values.yaml",
		"--set", "crds.enabled=false"}, more...)
}

func (h helmIn) run(args ...string) string {
	h.t.Helper()
	return run(h.t, command(h.t, h.env, tool(h.t, "helm"), args...))
}

func (h helmIn) failedOutput(args ...string) string {
	h.t.Helper()
	return failedOutput(h.t, command(h.t, h.env, tool(h.t, "helm"), args...))
}

func (h helmIn) deployment() *appsv1.Deployment {
	h.t.Helper()
	deployment, err := h.client.AppsV1().Deployments(h.namespace).Get(world.Within(h.t), releaseName, metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return deployment
}

// state returns the replicas and the mode of the Deployment, as in "2 Auto".
func (h helmIn) state() string {
	h.t.Helper()
	spec := h.deployment().Spec
	env := spec.Template.Spec.Containers[0].Env
	mode := env[slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == "RDS_AUTOPILOT_MODE" })].Value
	return fmt.Sprint(*spec.Replicas, " ", mode)
}

// kubectl patches the Deployment with the patches, managers and subresources of kubectl set env and kubectl scale.
func (h helmIn) kubectl(manager, patch string, subresources ...string) {
	h.t.Helper()
	_, err := h.client.AppsV1().Deployments(h.namespace).Patch(world.Within(h.t), releaseName, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: manager}, subresources...)
	if err != nil {
		h.t.Fatal(err)
	}
}

// TestUpgradeFollowsAnEmergencyStop runs the commands of docs/stop.md, and then an upgrade as in docs/upkeep.md.
func TestUpgradeFollowsAnEmergencyStop(t *testing.T) {
	h := newHelmIn(t)
	h.run(h.args("install")...)
	stop := func() {
		t.Helper()
		h.kubectl("kubectl-set", `{"spec":{"template":{"spec":{"containers":[{"name":"rds-autopilot","env":[{"name":"RDS_AUTOPILOT_MODE","value":"Recommend"}]}]}}}}`)
		h.kubectl("kubectl", `{"spec":{"replicas":0}}`, "scale")
		if got := h.state(); got != "0 Recommend" {
			t.Fatalf("the Deployment is not stopped: %s", got)
		}
	}
	stop()
	if text := h.failedOutput(h.args("upgrade")...); !strings.Contains(text, `conflict with "kubectl-set"`) && !strings.Contains(text, `conflicts with "kubectl`) {
		t.Errorf("without --force-conflicts, Helm prints %s", text)
	}
	h.run(h.args("upgrade", "--force-conflicts")...)
	if got := h.state(); got != "2 Auto" {
		t.Errorf("after the upgrade the Deployment has %s, want 2 replicas with mode Auto", got)
	}
	stop()
	h.run("rollback", releaseName, "1", "--namespace", h.namespace, "--force-conflicts")
	if got := h.state(); got != "2 Auto" {
		t.Errorf("after the rollback the Deployment has %s, want 2 replicas with mode Auto", got)
	}
	h.run(h.args("upgrade")...) // Helm owns the fields again
	h.run("uninstall", releaseName, "--namespace", h.namespace)
}

// TestFailedFirstInstallationIsRemoved uses an image that cannot be pulled. Helm removes the release, or leaves it failed.
func TestFailedFirstInstallationIsRemoved(t *testing.T) {
	h := newHelmIn(t)
	h.failedOutput(h.args("upgrade", "--install", "--rollback-on-failure", "--timeout", "10s", "--set", "image.tag=missing")...)
	if left := h.run("list", "--short", "--namespace", h.namespace); left != "" {
		t.Errorf("after --rollback-on-failure, there is still %s", left)
	}
	h.failedOutput(h.args("upgrade", "--install", "--wait", "--timeout", "10s", "--set", "image.tag=missing")...)
	h.run("uninstall", releaseName, "--namespace", h.namespace, "--wait")
}

// TestAnotherReleaseTakesTheDefinitionOver installs the chart a second time, with another name and in another namespace.
func TestAnotherReleaseTakesTheDefinitionOver(t *testing.T) {
	first, second := newHelmIn(t), newHelmIn(t)
	install := func(h helmIn, more ...string) []string {
		return append(h.args("install", "--set", "crds.enabled=true", "--set", "fullnameOverride=of-"+h.namespace[max(0, len(h.namespace)-20):]), more...)
	}
	first.run(install(first, "--take-ownership", "--force-conflicts")...)
	first.run("uninstall", releaseName, "--namespace", first.namespace)
	if text := second.failedOutput(install(second)...); !strings.Contains(text, "invalid ownership metadata") {
		t.Errorf("without --take-ownership, Helm prints %s", text)
	}
	second.run(install(second, "--take-ownership", "--force-conflicts")...)
	second.run("uninstall", releaseName, "--namespace", second.namespace)
}
