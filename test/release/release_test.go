// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// release is a release of the chart in a world, together with the service as its Deployment describes it.
type release struct {
	t      *testing.T
	w      *world.World
	values string // a file
	client *kubernetes.Clientset
	admin  dynamic.Interface
}

// newRelease returns a release in a world. It deletes the rights that the world has created, because Helm refuses to take over
// objects that it has not created.
func newRelease(t *testing.T, w *world.World) *release {
	t.Helper()
	client, admin := clients(t, w.Kube.Config())
	ctx := world.Within(t)
	objects, err := apiserver.Read(root + "/deploy/rbac.yaml")
	must(t, err)
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		resource := gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s")
		if err := admin.Resource(resource).Namespace(object.GetNamespace()).Delete(ctx, object.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "otc-credentials"}, StringData: map[string]string{}}
	for _, variable := range w.Cloud.Env() {
		name, value, _ := strings.Cut(variable, "=")
		secret.StringData[name] = value
	}
	if _, err := client.CoreV1().Secrets(releaseName).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	values, err := json.Marshal(valuesOf(w))
	must(t, err)
	return &release{t: t, w: w, client: client, admin: admin, values: tempFile(t, "values.json", string(values))}
}

// valuesOf returns the values with which the service works in a world.
func valuesOf(w *world.World) map[string]any {
	values := map[string]any{
		"credentials": map[string]any{"form": "Environment"},
	}
	flags := map[string]any{}
	args := w.ServeArgs()[1:]
	for i := 0; i+1 < len(args); i += 2 {
		flag, value := strings.TrimPrefix(args[i], "--"), args[i+1]
		switch {
		case flag == "public-url":
			values["publicURL"] = value
		case flag == "kubeconfig" || flag == "lease-namespace": // a pod needs neither
		case flag == "cloud-rate":
			flags[flag], _ = strconv.ParseFloat(value, 64) // the world has formatted it
		case strings.HasSuffix(flag, "-hosts"):
			flags[flag] = strings.Split(value, ",")
		default:
			flags[flag] = value
		}
	}
	values["flags"] = flags
	return values
}

func (r *release) helm(args ...string) string {
	r.t.Helper()
	return run(r.t, command(r.t, r.helmEnv(), tool(r.t, "helm"), append([]string{"--namespace", releaseName}, args...)...))
}

// helmEnv returns an environment in which Helm has no state outside the cluster.
func (r *release) helmEnv() []string {
	return []string{"KUBECONFIG=" + r.w.AdminKubeconfig(), "HOME=" + r.t.TempDir()}
}

// serve starts the service as a pod of the Deployment would, with its arguments, environment and ServiceAccount.
func (r *release) serve() *world.Process {
	r.t.Helper()
	ctx := world.Within(r.t)
	deployment, err := r.client.AppsV1().Deployments(releaseName).Get(ctx, releaseName, metav1.GetOptions{})
	must(r.t, err)
	pod := deployment.Spec.Template.Spec
	kubeconfig := kubeconfigOf(r.t, r.w, releaseName, pod.ServiceAccountName)
	args := append(slices.Clone(pod.Containers[0].Args[1:]), "--kubeconfig", kubeconfig)
	p, err := r.w.ServeIn(ctx, r.environment(pod.Containers[0]), args...)
	must(r.t, err)
	return p
}

// environment returns the variables that the kubelet would give a container.
func (r *release) environment(container corev1.Container) (env []string) {
	r.t.Helper()
	for _, from := range container.EnvFrom {
		secret, err := r.client.CoreV1().Secrets(releaseName).Get(world.Within(r.t), from.SecretRef.Name, metav1.GetOptions{})
		must(r.t, err)
		for name, value := range secret.Data {
			env = append(env, name+"="+string(value))
		}
	}
	limit := container.Resources.Limits.Memory().Value() >> 20
	for _, e := range container.Env {
		env = append(env, e.Name+"="+strings.ReplaceAll(e.Value, "$(MEMORY_LIMIT_MIB)", strconv.FormatInt(limit, 10)))
	}
	return env
}

var worlds world.Shared

// startWorld starts a world with an API server of its own, and without the service.
func startWorld(t *testing.T) *world.World {
	t.Helper()
	level.Long(t)
	apiserver.NeedReal(t)
	return worlds.StartAlone(t, world.Options{})
}

// kubeconfigOf returns the path of a kubeconfig of a ServiceAccount.
func kubeconfigOf(t *testing.T, w *world.World, namespace, name string) string {
	t.Helper()
	config, err := w.Kube.ServiceAccountConfig(world.Within(t), namespace, name)
	must(t, err)
	kubeconfig := filepath.Join(t.TempDir(), name)
	must(t, apiserver.WriteKubeconfig(kubeconfig, config))
	return kubeconfig
}

// stop stops the service, and fails the test if the API server has forbidden it something.
func stop(t *testing.T, p *world.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), world.Patience)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Errorf("stop the service: %v", err)
	}
	for _, l := range p.Lines() {
		if strings.Contains(l.Raw, "forbidden") {
			t.Error(l.Raw)
		}
	}
}

// database adds a database whose volume is a quarter full.
func database(t *testing.T, w *world.World, namespace, name string, autopilot bool) *world.DB {
	t.Helper()
	db, err := w.AddDatabase(world.Within(t), world.Database{
		Namespace: namespace, Name: name, Flavor: "rds.mysql.n1.large.4", VolumeGB: 40, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: autopilot,
	})
	must(t, err)
	return db
}

// cloudObjects returns the names of all topics, subscriptions and rules in the cloud.
func cloudObjects(w *world.World) (names []string) {
	for _, x := range w.Cloud.Topics() {
		names = append(names, "topic "+x.Name)
	}
	for _, x := range w.Cloud.Subscriptions() {
		names = append(names, "subscription "+x.TopicURN)
	}
	for _, x := range w.Cloud.Rules() {
		names = append(names, "rule "+x.Name)
	}
	return names
}

// waitUntil fails the test if a condition does not become true in time.
func waitUntil(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	must(t, world.Eventually(world.Within(t), what, done))
}

func waitArmed(t *testing.T, databases ...*world.DB) {
	t.Helper()
	for _, db := range databases {
		if _, err := db.WaitAutopilot(world.Within(t), "it is armed", world.Armed); err != nil {
			t.Fatal(err)
		}
	}
}

// waitNothingLeft waits until the cloud has no topic, subscription and rule.
func waitNothingLeft(t *testing.T, w *world.World) {
	t.Helper()
	waitUntil(t, "nothing is left in the cloud", func(context.Context) (bool, error) {
		if left := cloudObjects(w); len(left) > 0 {
			return false, fmt.Errorf("%q", left)
		}
		return true, nil
	})
}

// clients returns both clients of an access.
func clients(t *testing.T, config *rest.Config) (client *kubernetes.Clientset, objects dynamic.Interface) {
	t.Helper()
	client, err1 := kubernetes.NewForConfig(config)
	objects, err2 := dynamic.NewForConfig(config)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return client, objects
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
		must(r.t, err)
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
	must(t, asked.SetWorkload(simcloud.Workload{UsedGB: 33}))
	grown, err := asked.WaitAutopilot(world.Within(t), "the growth is completed", func(a *v1alpha1.RdsAutopilot) bool {
		return len(a.Status.Changes) > 0 && a.Status.Changes[0].State == v1alpha1.StateCompleted
	})
	must(t, err)
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
