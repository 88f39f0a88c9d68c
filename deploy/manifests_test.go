// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

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
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, &template, true))
	return template
}

func TestAPIServerAcceptsEveryManifest(t *testing.T) {
	cluster := shared.Cluster(t)
	if _, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{}, "namespace.yaml"); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("examples/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("the examples are %v, %v", files, err)
	}
	files = append(files, rdsCRD, autopilotCRD, "alerts.yaml", "install.yaml", "rbac.yaml", "servicemonitor.yaml")
	if _, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{DryRun: true}, files...); err != nil {
		t.Error(err)
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

func TestImageStandsOnDistrolessAndRunsWithoutRoot(t *testing.T) {
	file := document(t, "Dockerfile")
	bases := regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?(\S+)`).FindAllStringSubmatch(file, -1)
	final := bases[len(bases)-1][1]
	if !regexp.MustCompile(`^gcr\.io/distroless/static-debian\d+:nonroot@sha256:[0-9a-f]{64}$`).MatchString(final) {
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
	for _, service := range []*unstructured.Unstructured{receiver, metrics} {
		if port := at(t, service, "spec", "ports", 0, "targetPort"); !ports[port] || len(at(t, service, "spec", "ports").([]any)) != 1 {
			t.Errorf("Service %s leads to port %v, and the pod has %v", service.GetName(), port, ports)
		}
	}
	for _, c := range []struct {
		from   *unstructured.Unstructured
		field  []any
		labels map[string]string
	}{
		{receiver, []any{"spec", "selector"}, template.Labels},
		{metrics, []any{"spec", "selector"}, template.Labels},
		{installed(t, "PodDisruptionBudget", own), []any{"spec", "selector", "matchLabels"}, template.Labels},
		{installed(t, "NetworkPolicy", own), []any{"spec", "podSelector", "matchLabels"}, template.Labels},
		{read(t, "servicemonitor.yaml")[0], []any{"spec", "selector", "matchLabels"}, metrics.GetLabels()},
	} {
		selector := at(t, c.from, c.field...).(map[string]any)
		for key, value := range selector {
			if c.labels[key] != value {
				t.Errorf("%s %s selects %s=%s, the object has %q", c.from.GetKind(), c.from.GetName(), key, value, c.labels[key])
			}
		}
		if len(selector) == 0 {
			t.Errorf("%s %s selects everything", c.from.GetKind(), c.from.GetName())
		}
	}
}
