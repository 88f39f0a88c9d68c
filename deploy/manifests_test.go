package deploy_test

import (
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/internal/kubetest"
)

// manifests are all files that somebody may apply.
func manifests(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.yaml", "crds/*.yaml", "examples/*.yaml"} {
		found, err := fs.Glob(os.DirFS("."), pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s, %v", pattern, err)
		}
		files = append(files, found...)
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "kustomization.yaml" })
}

// find returns the one object of that kind and name among all manifests.
func find(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	var found *unstructured.Unstructured
	for _, file := range manifests(t) {
		objects, err := kubetest.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			if object.GetKind() != kind || object.GetName() != name {
				continue
			}
			if found != nil {
				t.Fatalf("%s %s twice", kind, name)
			}
			found = object
		}
	}
	if found == nil {
		t.Fatalf("no %s %s", kind, name)
	}
	return found
}

// typed decodes an object into the API's own type, with every field known.
func typed[T any](t *testing.T, object *unstructured.Unstructured) T {
	t.Helper()
	var v T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &v, true); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheAPIServerAcceptsEveryManifest(t *testing.T) {
	cluster := shared.Cluster(t)
	if _, err := cluster.Apply(t.Context(), kubetest.ApplyOptions{}, "namespace.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, file := range manifests(t) {
		t.Run(file, func(t *testing.T) {
			objects, err := cluster.Apply(t.Context(), kubetest.ApplyOptions{DryRun: true}, file)
			if err != nil {
				t.Fatal(err)
			}
			if len(objects) == 0 {
				t.Error("holds no object")
			}
			for _, object := range objects {
				if namespace := object.GetNamespace(); !strings.HasPrefix(file, "examples/rds") && namespace != "" && namespace != "rds-autopilot" {
					t.Errorf("%s %s is in namespace %s", object.GetKind(), object.GetName(), namespace)
				}
			}
		})
	}
}

func TestKustomizationHasWhatBelongsToTheServiceAlone(t *testing.T) {
	text, err := os.ReadFile("kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct {
		metav1.TypeMeta `json:",inline"`
		Resources       []string `json:"resources"`
	}
	if err := yaml.UnmarshalStrict(text, &kustomization); err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(manifests(t), func(file string) bool {
		return file == rdsCRD || file == "servicemonitor.yaml" || file == "alerts.yaml" || strings.HasPrefix(file, "examples/")
	})
	slices.Sort(want)
	slices.Sort(kustomization.Resources)
	if diff := cmp.Diff(want, kustomization.Resources); diff != "" {
		t.Errorf("resources (-files +kustomization):\n%s", diff)
	}
}

func TestPodsPassTheRestrictedStandard(t *testing.T) {
	cluster := shared.Cluster(t)
	if _, err := cluster.Apply(t.Context(), kubetest.ApplyOptions{}, "namespace.yaml"); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: podSpec(t)}
	if _, err := client.CoreV1().Pods("rds-autopilot").Create(t.Context(), pod, dryRun); err != nil {
		t.Errorf("the pod of the Deployment: %v", err)
	}
	loose := pod.DeepCopy()
	loose.Spec.Containers[0].SecurityContext.Capabilities = nil
	if _, err := client.CoreV1().Pods("rds-autopilot").Create(t.Context(), loose, dryRun); err == nil || !strings.Contains(err.Error(), "restricted") {
		t.Errorf("a pod with capabilities: %v, want it refused", err)
	}
	if readOnly := pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
		t.Error("the root file system can be written, which the standard does not look at")
	}
}

// TestManifestsFitTogether checks the names by which one manifest means another; the API server does not.
func TestManifestsFitTogether(t *testing.T) {
	template := podTemplate(t)
	container := template.Spec.Containers[0]
	ports := map[string]bool{}
	for _, port := range container.Ports {
		ports[port.Name] = true
	}

	services := map[string]corev1.Service{}
	for _, name := range []string{"rds-autopilot", "rds-autopilot-admin"} {
		service := typed[corev1.Service](t, find(t, "Service", name))
		services[name] = service
		for key, value := range service.Spec.Selector {
			if template.Labels[key] != value {
				t.Errorf("Service %s selects %s=%s, pods have %q", name, key, value, template.Labels[key])
			}
		}
		if len(service.Spec.Ports) != 1 {
			t.Errorf("Service %s has %d ports: receiver and admin are apart", name, len(service.Spec.Ports))
		}
		for _, port := range service.Spec.Ports {
			if !ports[port.TargetPort.String()] {
				t.Errorf("Service %s: no port %s in the pod", name, port.TargetPort.String())
			}
		}
	}

	backend := at(t, find(t, "Ingress", "rds-autopilot"), "spec", "rules", 0, "http", "paths", 0, "backend", "service")
	if diff := cmp.Diff(map[string]any{"name": "rds-autopilot", "port": map[string]any{"name": services["rds-autopilot"].Spec.Ports[0].Name}}, backend); diff != "" {
		t.Errorf("the Ingress's backend (-want +got):\n%s", diff)
	}
	host := at(t, find(t, "Ingress", "rds-autopilot"), "spec", "rules", 0, "host")
	path := at(t, find(t, "Ingress", "rds-autopilot"), "spec", "rules", 0, "http", "paths", 0, "path")
	if want := "--public-url=https://" + host.(string) + path.(string); !slices.Contains(container.Args, want) {
		t.Errorf("args are %v, the Ingress needs %s", container.Args, want)
	}

	monitor := find(t, "ServiceMonitor", "rds-autopilot")
	for key, value := range at(t, monitor, "spec", "selector", "matchLabels").(map[string]any) {
		if services["rds-autopilot-admin"].Labels[key] != value {
			t.Errorf("the ServiceMonitor selects %s=%s, the Service has %q", key, value, services["rds-autopilot-admin"].Labels[key])
		}
		if key == "app.kubernetes.io/component" && services["rds-autopilot"].Labels[key] == value {
			t.Error("the ServiceMonitor selects the receiver as well")
		}
	}
	if port := at(t, monitor, "spec", "endpoints", 0, "port"); port != services["rds-autopilot-admin"].Spec.Ports[0].Name {
		t.Errorf("the ServiceMonitor reads port %v", port)
	}

	for _, probe := range []*corev1.Probe{container.ReadinessProbe, container.LivenessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Port.String() != "admin" {
			t.Errorf("probe %v, want one of the admin port", probe)
		}
	}
	if account := find(t, "ServiceAccount", template.Spec.ServiceAccountName); account.GetNamespace() != "rds-autopilot" {
		t.Errorf("ServiceAccount in %s", account.GetNamespace())
	}
	secret := find(t, "Secret", template.Spec.Volumes[0].Secret.SecretName)
	if secret.GetNamespace() != "rds-autopilot" {
		t.Errorf("Secret in %s", secret.GetNamespace())
	}
	var file struct {
		Clouds map[string]any `json:"clouds"`
	}
	if err := yaml.UnmarshalStrict([]byte(at(t, secret, "stringData", "clouds.yaml").(string)), &file); err != nil {
		t.Fatal(err)
	}
	if cloud := container.Env[0]; cloud.Name != "OS_CLOUD" || file.Clouds[cloud.Value] == nil {
		t.Errorf("%s=%s, and clouds.yaml has %v", cloud.Name, cloud.Value, file.Clouds)
	}
	// The SDK looks for it there; a mount of a single file would not follow changes of the Secret.
	if mount := container.VolumeMounts[0]; mount.Name != template.Spec.Volumes[0].Name || mount.MountPath != "/etc/openstack" || mount.SubPath != "" {
		t.Errorf("mounted as %+v", mount)
	}
	for _, kind := range []string{"PodDisruptionBudget", "NetworkPolicy"} {
		field := "selector"
		if kind == "NetworkPolicy" {
			field = "podSelector"
		}
		for key, value := range at(t, find(t, kind, "rds-autopilot"), "spec", field, "matchLabels").(map[string]any) {
			if template.Labels[key] != value {
				t.Errorf("the %s selects %s=%s, pods have %q", kind, key, value, template.Labels[key])
			}
		}
	}
}

// TestGoKnowsTheLimitOfItsMemory puts the environment together as the kubelet does.
func TestGoKnowsTheLimitOfItsMemory(t *testing.T) {
	container := podSpec(t).Containers[0]
	limit := container.Resources.Limits.Memory().Value()
	env := map[string]string{}
	for _, e := range container.Env {
		env[e.Name] = e.Value
		for name, value := range env { // those above it only
			env[e.Name] = strings.ReplaceAll(env[e.Name], "$("+name+")", value)
		}
		if e.ValueFrom != nil && e.ValueFrom.ResourceFieldRef.Resource == "limits.memory" && e.ValueFrom.ResourceFieldRef.ContainerName == container.Name {
			divisor := e.ValueFrom.ResourceFieldRef.Divisor.Value()
			env[e.Name] = strconv.FormatInt((limit+divisor-1)/divisor, 10)
		}
	}
	got, err := strconv.ParseInt(env["GOMEMLIMIT"], 10, 64) // Go reads plain bytes
	if err != nil || got < limit*85/100 || got > limit*96/100 {
		t.Errorf("GOMEMLIMIT is %q, the container's limit %d: %v", env["GOMEMLIMIT"], limit, err)
	}
}

func podTemplate(t *testing.T) corev1.PodTemplateSpec {
	t.Helper()
	template := at(t, find(t, "Deployment", "rds-autopilot"), "spec", "template").(map[string]any)
	return typed[corev1.PodTemplateSpec](t, &unstructured.Unstructured{Object: template})
}

func podSpec(t *testing.T) corev1.PodSpec { return podTemplate(t).Spec }

// at follows field names and list positions.
func at(t *testing.T, object *unstructured.Unstructured, path ...any) any {
	t.Helper()
	var v any = object.Object
	for _, step := range path {
		switch s := step.(type) {
		case string:
			fields, ok := v.(map[string]any)
			if !ok || fields[s] == nil {
				t.Fatalf("%s %s: no %v of %v", object.GetKind(), object.GetName(), step, path)
			}
			v = fields[s]
		case int:
			list, ok := v.([]any)
			if !ok || len(list) <= s {
				t.Fatalf("%s %s: no %v of %v", object.GetKind(), object.GetName(), step, path)
			}
			v = list[s]
		}
	}
	return v
}
