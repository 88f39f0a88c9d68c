// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

// files returns the files that match one of the patterns, in order.
func files(t *testing.T, patterns ...string) (found []string) {
	t.Helper()
	for _, pattern := range patterns {
		matches, err := filepath.Glob(pattern)
		if err != nil || len(matches) == 0 {
			t.Fatalf("no %s, %v", pattern, err)
		}
		found = append(found, matches...)
	}
	slices.Sort(found)
	return found
}

// installed returns the object of install.yaml with that kind and name.
func installed(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range read(t, "install.yaml") {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	t.Fatalf("install.yaml has no %s %s", kind, name)
	return nil
}

// podTemplate returns the pod of the Deployment. It fails the test if the pod has a field that Kubernetes does not know.
func podTemplate(t *testing.T) (template corev1.PodTemplateSpec) {
	t.Helper()
	object := at(t, installed(t, "Deployment", own), "spec", "template").(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, &template, true); err != nil {
		t.Fatal(err)
	}
	return template
}

func TestAPIServerAcceptsEveryManifest(t *testing.T) {
	cluster := shared.Cluster(t)
	if _, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{}, "namespace.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, file := range files(t, "*.yaml", "crds/*.yaml", "examples/*.yaml") {
		if file == "kustomization.yaml" || file == "kube-state-metrics.yaml" { // neither is an object
			continue
		}
		t.Run(file, func(t *testing.T) {
			objects, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{DryRun: true}, file)
			if err != nil || len(objects) == 0 {
				t.Fatalf("%d objects, %v", len(objects), err)
			}
			for _, object := range objects {
				namespace := object.GetNamespace()
				isExample := namespace == "default" && strings.HasPrefix(file, "examples/rds")
				if namespace != "" && namespace != own && !isExample {
					t.Errorf("%s %s is in namespace %s", object.GetKind(), object.GetName(), namespace)
				}
			}
		})
	}
}

// Deleting the CRD of Rds deletes every database, so it must not go with the service.
func TestInstallLacksTheCRDOfRds(t *testing.T) {
	names := map[string]bool{}
	for _, object := range read(t, "install.yaml") {
		names[object.GetName()] = true
	}
	if names["rdss.otc.mcsps.de"] || !names["rdsautopilots.autopilot.otc.mcsps.de"] {
		t.Errorf("install.yaml has %v", names)
	}
}

// TestInstallIsRenderedFromThisChart compares the checksums that make writes, because this test runs without Helm.
func TestInstallIsRenderedFromThisChart(t *testing.T) {
	sum := sha256.New()
	for _, file := range files(t, "chart/Chart.yaml", "chart/ci/default-values.yaml", "chart/ci/install-values.yaml",
		"chart/files/alerts*.yaml", "chart/files/defaults.yaml", "chart/files/rdsautopilots.yaml", "chart/values.yaml", "namespace.yaml",
		"chart/templates/*.yaml", "chart/templates/*.tpl") {
		sum.Write([]byte(document(t, "deploy/"+file)))
	}
	for _, file := range []string{"alerts.yaml", "install.yaml", "rbac.yaml", "servicemonitor.yaml", "testdata/rendered-defaults.yaml"} {
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
	pods := clientset(t, cluster.Config()).CoreV1().Pods(own)
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: podTemplate(t).Spec}
	if _, err := pods.Create(t.Context(), pod, options); err != nil {
		t.Errorf("the pod of the Deployment: %v", err)
	}
	pod.Spec.Containers[0].SecurityContext.Capabilities = nil
	if _, err := pods.Create(t.Context(), pod, options); err == nil || !strings.Contains(err.Error(), "restricted") {
		t.Errorf("a pod with capabilities: %v, want it refused", err)
	}
}

// TestPodHasNoMoreThanItNeeds checks what the restricted standard does not.
func TestPodHasNoMoreThanItNeeds(t *testing.T) {
	pod := podTemplate(t).Spec
	if len(pod.Containers) != 1 || len(pod.Volumes) != 1 || pod.Volumes[0].Secret == nil || len(pod.Containers[0].VolumeMounts) != 1 {
		t.Fatalf("it has more than one container and its credentials: %+v", pod)
	}
	container, mount := pod.Containers[0], pod.Containers[0].VolumeMounts[0]
	if readOnly := container.SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
		t.Error("its root file system can be written")
	}
	if mode := pod.Volumes[0].Secret.DefaultMode; !mount.ReadOnly || mode == nil || *mode&0o007 != 0 {
		t.Errorf("others can read its credentials, or it can write them: mode %v, %+v", mode, mount)
	}
	// The SDK looks for clouds.yaml there. A mount of a single file would not follow changes of the Secret.
	if mount.MountPath != "/etc/openstack" || mount.SubPath != "" {
		t.Errorf("its credentials are at %+v", mount)
	}
	limit, variable := container.Resources.Limits.Memory().Value(), ""
	for _, e := range container.Env {
		if e.Name == "GOMEMLIMIT" { // $(MEMORY_LIMIT_MIB) is the limit in MiB
			variable = strings.ReplaceAll(e.Value, "$(MEMORY_LIMIT_MIB)", strconv.FormatInt(limit>>20, 10))
		}
	}
	if got, err := strconv.ParseInt(variable, 10, 64); err != nil || got < limit*85/100 || got > limit*96/100 {
		t.Errorf("GOMEMLIMIT is %q, the container's limit %d: %v", variable, limit, err)
	}
}

func TestImageStandsOnDistrolessAndRunsWithoutRoot(t *testing.T) {
	file := document(t, "Dockerfile")
	bases := regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?(\S+)`).FindAllStringSubmatch(file, -1)
	for _, base := range bases {
		if !regexp.MustCompile(`@sha256:[0-9a-f]{64}$`).MatchString(base[1]) {
			t.Errorf("%s is not pinned by its digest", base[1])
		}
	}
	final := bases[len(bases)-1][1]
	if !regexp.MustCompile(`^gcr\.io/distroless/static-debian\d+:nonroot@`).MatchString(final) {
		t.Errorf("it stands on %s, want distroless/static: no shell, no package manager", final)
	}
	if !strings.Contains(document(t, ".ko.yaml"), "defaultBaseImage: "+final+"\n") {
		t.Errorf(".ko.yaml builds releases on another base, want %s", final)
	}
	pod := podTemplate(t).Spec.SecurityContext
	if user := fmt.Sprintf("\nUSER %d:%d\n", *pod.RunAsUser, *pod.RunAsGroup); *pod.RunAsUser == 0 || !strings.Contains(file, user) {
		t.Errorf("the pod runs as %d:%d, and the image as another user", *pod.RunAsUser, *pod.RunAsGroup)
	}
}

// TestManifestsSelectThePodAndItsPorts checks what the API server does not check.
func TestManifestsSelectThePodAndItsPorts(t *testing.T) {
	template := podTemplate(t)
	ports := map[any]bool{}
	for _, port := range template.Spec.Containers[0].Ports {
		ports[port.Name] = true
	}
	receiver, metrics := installed(t, "Service", own), installed(t, "Service", own+"-admin")
	for label, value := range metrics.GetLabels() { // a Prometheus may copy them to each series
		if strings.Contains(value, "0.1.0") {
			t.Errorf("the label %s=%s of the Service that Prometheus scrapes changes with the version", label, value)
		}
	}
	for _, service := range []*unstructured.Unstructured{receiver, metrics} {
		if port := at(t, service, "spec", "ports", 0, "targetPort"); !ports[port] || len(at(t, service, "spec", "ports").([]any)) != 1 {
			t.Errorf("Service %s leads to port %v, and the pod has %v", service.GetName(), port, ports)
		}
	}
	budget := installed(t, "PodDisruptionBudget", own)
	if policy := at(t, budget, "spec", "unhealthyPodEvictionPolicy"); policy != "AlwaysAllow" {
		t.Errorf("pods that are not ready block the drain of their nodes: %v", policy)
	}
	for _, c := range []struct {
		from   *unstructured.Unstructured
		field  []any
		labels map[string]string
	}{
		{receiver, []any{"spec", "selector"}, template.Labels},
		{metrics, []any{"spec", "selector"}, template.Labels},
		{budget, []any{"spec", "selector", "matchLabels"}, template.Labels},
		{installed(t, "NetworkPolicy", own), []any{"spec", "podSelector", "matchLabels"}, template.Labels},
		{read(t, "servicemonitor.yaml")[0], []any{"spec", "selector", "matchLabels"}, metrics.GetLabels()},
	} {
		selector := at(t, c.from, c.field...).(map[string]any)
		for key, value := range selector {
			if c.labels[key] != value {
				t.Errorf("%s %s selects %s=%s, the object has %q", c.from.GetKind(), c.from.GetName(), key, value, c.labels[key])
			}
		}
		if c.from.GetKind() == "ServiceMonitor" && selector["app.kubernetes.io/instance"] != nil {
			t.Error("the ServiceMonitor selects by app.kubernetes.io/instance, which Argo CD overwrites")
		}
		if len(selector) == 0 {
			t.Errorf("%s %s selects everything", c.from.GetKind(), c.from.GetName())
		}
	}
}
