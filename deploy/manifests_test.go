// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
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

	"github.com/mcsps/rds-autopilot/test/apiserver"
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
	return slices.DeleteFunc(files, func(file string) bool { return file == "kustomization.yaml" || file == "kube-state-metrics.yaml" }) // neither is an object
}

// parts are files of which install.yaml holds every object as well.
func parts() []string { return []string{"namespace.yaml", "rbac.yaml", autopilotCRD} }

func read(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := apiserver.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// find returns the one object of that kind and name among all manifests.
func find(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	var found *unstructured.Unstructured
	for _, file := range manifests(t) {
		if slices.Contains(parts(), file) {
			continue
		}
		for _, object := range read(t, file) {
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

func TestAPIServerAcceptsEveryManifest(t *testing.T) {
	cluster := shared.Cluster(t)
	if _, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{}, "namespace.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, file := range manifests(t) {
		t.Run(file, func(t *testing.T) {
			objects, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{DryRun: true}, file)
			if err != nil {
				t.Fatal(err)
			}
			if len(objects) == 0 {
				t.Error("holds no object")
			}
			for _, object := range objects {
				if namespace := object.GetNamespace(); !strings.HasPrefix(file, "examples/rds") && namespace != "" && namespace != "rds-autopilot" && (namespace != system || !strings.HasPrefix(object.GetKind(), "Role")) {
					t.Errorf("%s %s is in namespace %s", object.GetKind(), object.GetName(), namespace)
				}
			}
		})
	}
}

// TestInstallContainsTheServiceButNotTheRdsCRD compares the objects of install.yaml with a list. It must not contain the CRD of
// Rds, because deleting that CRD deletes every database.
func TestInstallContainsTheServiceButNotTheRdsCRD(t *testing.T) {
	installed := map[string]*unstructured.Unstructured{}
	for _, object := range read(t, "install.yaml") {
		key := object.GetKind() + " " + object.GetName()
		if installed[key] != nil {
			t.Errorf("%s twice", key)
		}
		installed[key] = object
	}
	want := []string{
		"ClusterRole rds-autopilot-rds-autopilot", "ClusterRole rds-autopilot-rds-autopilot-edit", "ClusterRole rds-autopilot-rds-autopilot-view",
		"ClusterRoleBinding rds-autopilot-rds-autopilot",
		"CustomResourceDefinition rdsautopilots.autopilot.otc.mcsps.de", "Deployment rds-autopilot", "Ingress rds-autopilot", "Namespace rds-autopilot",
		"NetworkPolicy rds-autopilot", "PodDisruptionBudget rds-autopilot", "Role rds-autopilot", "Role rds-autopilot-rds-autopilot", "RoleBinding rds-autopilot",
		"RoleBinding rds-autopilot-rds-autopilot",
		"Service rds-autopilot", "Service rds-autopilot-admin", "ServiceAccount rds-autopilot",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(installed))); diff != "" {
		t.Errorf("install.yaml (-want +got):\n%s", diff)
	}
	for _, file := range parts() {
		for _, object := range read(t, file) {
			key := object.GetKind() + " " + object.GetName()
			if installed[key] == nil {
				continue // the list above already reports it
			}
			if file == autopilotCRD { // the chart adds to its metadata
				object.SetLabels(installed[key].GetLabels())
				object.SetAnnotations(installed[key].GetAnnotations())
			}
			if diff := cmp.Diff(object.Object, installed[key].Object); diff != "" {
				t.Errorf("%s is another in install.yaml (-%s +install.yaml):\n%s", key, file, diff)
			}
			delete(installed, key)
		}
	}
	for key := range installed {
		if strings.Contains(key, "Role") || strings.Contains(key, "ServiceAccount") {
			t.Errorf("rbac.yaml lacks %s, and the tests run with rbac.yaml", key)
		}
	}
	var kustomization struct {
		metav1.TypeMeta `json:",inline"`
		Resources       []string `json:"resources"`
	}
	if err := yaml.UnmarshalStrict([]byte(document(t, "deploy/kustomization.yaml")), &kustomization); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"install.yaml"}, kustomization.Resources); diff != "" {
		t.Errorf("resources of kustomization.yaml (-want +got):\n%s", diff)
	}
}

// TestInstallIsRenderedFromThisChart compares the checksums that make writes, because this test runs without Helm.
func TestInstallIsRenderedFromThisChart(t *testing.T) {
	files := []string{
		"chart/Chart.yaml", "chart/ci/default-values.yaml", "chart/ci/install-values.yaml", "chart/files/defaults.yaml",
		"chart/files/rdsautopilots.yaml", "chart/values.yaml", "namespace.yaml",
	}
	for _, pattern := range []string{"chart/templates/*.yaml", "chart/templates/*/*.yaml", "chart/templates/*.tpl"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	sum := sha256.New()
	for _, file := range files {
		sum.Write([]byte(document(t, "deploy/"+file)))
	}
	for _, file := range []string{"install.yaml", "rbac.yaml", "servicemonitor.yaml", "testdata/rendered-defaults.yaml"} {
		head, _, _ := strings.Cut(document(t, "deploy/"+file), "\n")
		if !strings.HasSuffix(head, fmt.Sprintf(" %x", sum.Sum(nil))) {
			t.Errorf("deploy/%s is stale: run make generate and commit", file)
		}
	}
}

func TestPodsPassTheRestrictedStandard(t *testing.T) {
	cluster := shared.Cluster(t)
	if _, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{}, "namespace.yaml"); err != nil {
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
}

// TestManifestsNameEachOtherCorrectly checks references between manifests. The API server does not check them.
func TestManifestsNameEachOtherCorrectly(t *testing.T) {
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
		checkSelects(t, "Service "+name, service.Spec.Selector, template.Labels)
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
	env := map[string]string{}
	for _, e := range container.Env {
		env[e.Name] = e.Value
	}
	if want := "https://" + host.(string) + path.(string); env["RDS_AUTOPILOT_PUBLIC_URL"] != want {
		t.Errorf("the environment is %v, the Ingress needs %s", env, want)
	}
	if diff := cmp.Diff([]string{"serve"}, container.Args); diff != "" {
		t.Errorf("arguments, which kubectl exec would not have (-want +got):\n%s", diff)
	}

	monitor := find(t, "ServiceMonitor", "rds-autopilot")
	selected, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	if err != nil {
		t.Fatal(err)
	}
	checkSelects(t, "ServiceMonitor", selected, services["rds-autopilot-admin"].Labels)
	for key, value := range selected {
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
	if cloud := env["OS_CLOUD"]; file.Clouds[cloud] == nil {
		t.Errorf("OS_CLOUD=%s, and clouds.yaml has %v", cloud, file.Clouds)
	}
	// The SDK looks for it there; a mount of a single file would not follow changes of the Secret.
	if mount := container.VolumeMounts[0]; mount.Name != template.Spec.Volumes[0].Name || mount.MountPath != "/etc/openstack" || mount.SubPath != "" {
		t.Errorf("mounted as %+v", mount)
	}
	for kind, field := range map[string]string{"PodDisruptionBudget": "selector", "NetworkPolicy": "podSelector"} {
		selected, _, err := unstructured.NestedStringMap(find(t, kind, "rds-autopilot").Object, "spec", field, "matchLabels")
		if err != nil {
			t.Fatal(err)
		}
		checkSelects(t, kind, selected, template.Labels)
	}
}

func checkSelects(t *testing.T, what string, selector, labels map[string]string) {
	t.Helper()
	if len(selector) == 0 {
		t.Errorf("%s selects everything", what)
	}
	for key, value := range selector {
		if labels[key] != value {
			t.Errorf("%s selects %s=%s, the object has %q", what, key, value, labels[key])
		}
	}
}

// TestGOMEMLIMITIsBelowTheContainersLimit puts the environment together as the kubelet does.
func TestGOMEMLIMITIsBelowTheContainersLimit(t *testing.T) {
	container := podSpec(t).Containers[0]
	limit := container.Resources.Limits.Memory().Value()
	env := map[string]string{}
	for _, e := range container.Env {
		env[e.Name] = e.Value
		for name, value := range env { // those above it only
			env[e.Name] = strings.ReplaceAll(env[e.Name], "$("+name+")", value)
		}
		if e.ValueFrom != nil && e.ValueFrom.ResourceFieldRef != nil && e.ValueFrom.ResourceFieldRef.Resource == "limits.memory" && e.ValueFrom.ResourceFieldRef.ContainerName == container.Name {
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
