// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/mcsps/rds-autopilot/test/apiserver"
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		r.t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	kubeconfig := kubeconfigOf(r.t, r.w, releaseName, pod.ServiceAccountName)
	args := append(slices.Clone(pod.Containers[0].Args[1:]), "--kubeconfig", kubeconfig)
	p, err := r.w.ServeIn(ctx, r.environment(pod.Containers[0]), args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// environment returns the variables that the kubelet would give a container.
func (r *release) environment(container corev1.Container) (env []string) {
	r.t.Helper()
	for _, from := range container.EnvFrom {
		secret, err := r.client.CoreV1().Secrets(releaseName).Get(world.Within(r.t), from.SecretRef.Name, metav1.GetOptions{})
		if err != nil {
			r.t.Fatal(err)
		}
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
