// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

// nulls returns values in which every section of values.yaml is null, and the scalars and lists beside them.
func nulls(t *testing.T) (sections, others map[string]any) {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal(read(t, chart+"/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	sections, others = map[string]any{}, map[string]any{}
	for name, value := range values {
		if _, ok := value.(map[string]any); ok && !strings.HasSuffix(name, "ecurityContext") && name != "resources" {
			sections[name] = nil
		} else if name != "publicURL" {
			others[name] = nil
		}
	}
	return sections, others
}

func asYAML(t *testing.T, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestNullSectionsGetTheirDefaults sets all sections to null at once, as "flags:" with only comments below it does.
func TestNullSectionsGetTheirDefaults(t *testing.T) {
	sections, others := nulls(t)
	want := template(t, "--values", "deploy/chart/ci/default-values.yaml")
	got := template(t, "--values", "deploy/chart/ci/default-values.yaml", "--values", write(t, "null.yaml", asYAML(t, sections)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("with %v = null (-defaults +null):\n%s", slices.Sorted(maps.Keys(sections)), diff)
	}
	inner := "image:\n  registry: ghcr.io\nmonitoring:\n  dashboard:\n  kubeStateMetrics:\ntest:\n  image:\n  database:\nprometheusRule:\n  thresholds:\n"
	if got := template(t, "--values", "deploy/chart/ci/default-values.yaml", "--values", write(t, "inner.yaml", inner)); got != want {
		t.Errorf("with null in sections (-defaults +null):\n%s", cmp.Diff(want, got))
	}
	for name := range others {
		t.Run(name, func(t *testing.T) {
			args := []string{"--values", "deploy/chart/ci/default-values.yaml", "--set", name + "=null"}
			if slices.Contains([]string{"replicaCount", "terminationGracePeriodSeconds", "mode", "systemNamespace"}, name) {
				return // numbers and words that the API server or the service needs
			}
			template(t, args...)
		})
	}
}

// parent makes a chart that has ours as a dependency, and returns its folder.
func parent(t *testing.T, values string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "charts", "rds-autopilot"), os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: parent\nversion: 1.0.0\ndependencies:\n- name: rds-autopilot\n  version: 0.1.0\n" +
			"  condition: rds-autopilot.enabled\n",
		"values.yaml": values,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestParentChartSwitchesThisOneOnAndOff(t *testing.T) {
	helm := tool(t, "helm")
	dir := parent(t, "rds-autopilot:\n  enabled: true\n  publicURL: https://a.example.com/smn\n  flags:\n  # sweep-interval: 10m\n  ingress:\n")
	if on := run(t, command(t, nil, helm, "template", own, dir)); !strings.Contains(on, "kind: Deployment") {
		t.Errorf("on:\n%s", on)
	}
	if off := run(t, command(t, nil, helm, "template", own, dir, "--set", "rds-autopilot.enabled=false")); strings.Contains(off, "kind:") {
		t.Errorf("off:\n%s", off)
	}
}

// TestParentChartLeavesFieldsOut uses each way in which somebody may try it.
func TestParentChartLeavesFieldsOut(t *testing.T) {
	helm := tool(t, "helm")
	ids := regexp.MustCompile(`(?m)^ *(runAsUser|runAsGroup|fsGroup): .*$`)
	values := func(empty string) string {
		return "rds-autopilot:\n  publicURL: https://a.example.com/smn\n  podSecurityContext:\n    runAsUser: " + empty + "\n    runAsGroup: " + empty +
			"\n    fsGroup: " + empty + "\n"
	}
	for name, args := range map[string][]string{
		"empty in its values":    {parent(t, values(`""`))},
		"null in the user's":     {parent(t, values("1")), "--values", write(t, "null.yaml", values("null"))},
		"null, and on OpenShift": {parent(t, values("null")), "--api-versions", "security.openshift.io/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			if found := ids.FindAllString(run(t, command(t, nil, helm, append([]string{"template", own}, args...)...)), -1); len(found) > 0 {
				t.Errorf("it has %q", found)
			}
		})
	}
}

// pods returns the specs of all pods that a rendered chart has, by the names of their objects.
func pods(t *testing.T, rendered string) map[string]corev1.PodSpec {
	t.Helper()
	objects, err := apiserver.Read(write(t, "rendered.yaml", rendered))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]corev1.PodSpec{}
	for _, object := range objects {
		path := map[string][]string{"Pod": {"spec"}, "Deployment": {"spec", "template", "spec"}}[object.GetKind()]
		if path == nil {
			continue
		}
		fields, _, err := unstructured.NestedMap(object.Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		var spec corev1.PodSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &spec); err != nil {
			t.Fatal(err)
		}
		all[object.GetName()] = spec
	}
	if len(all) < 3 {
		t.Fatalf("only the pods %v", slices.Sorted(maps.Keys(all)))
	}
	return all
}

// TestOpenShiftAcceptsEveryPod checks the rules of the SCC restricted-v2, which every pod of OpenShift must meet by default.
func TestOpenShiftAcceptsEveryPod(t *testing.T) {
	for name, args := range map[string][]string{
		"the values for it": {"--values", "deploy/chart/ci/openshift-values.yaml"},
		"the defaults":      {"--values", "deploy/chart/ci/default-values.yaml", "--api-versions", "security.openshift.io/v1"},
	} {
		for pod, spec := range pods(t, template(t, append(args, "--set", "test.database.namespace=shop,test.database.name=my-rds")...)) {
			t.Run(name+" "+pod, func(t *testing.T) {
				if wrong := againstRestrictedV2(spec); len(wrong) > 0 {
					t.Error(strings.Join(wrong, "\n"))
				}
			})
		}
	}
}

func againstRestrictedV2(spec corev1.PodSpec) (wrong []string) {
	refuse := func(is bool, format string, args ...any) {
		if is {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	yes := func(b *bool) bool { return b != nil && *b }
	refuse(spec.HostNetwork || spec.HostPID || spec.HostIPC, "it shares namespaces of the node")
	pod := spec.SecurityContext
	if pod == nil {
		pod = &corev1.PodSecurityContext{}
	}
	refuse(pod.RunAsUser != nil || pod.FSGroup != nil || pod.RunAsGroup != nil, "ids outside the range of the namespace: %v", pod)
	refuse(len(pod.SupplementalGroups) > 0 || len(pod.Sysctls) > 0 || pod.SELinuxOptions != nil, "groups, sysctls or SELinux: %v", pod)
	profile := pod.SeccompProfile
	refuse(profile != nil && profile.Type != corev1.SeccompProfileTypeRuntimeDefault, "the seccomp profile %v", profile)
	for _, v := range spec.Volumes {
		refuse(v.HostPath != nil, "the volume %s is of the node", v.Name)
		refuse(v.Secret == nil && v.ConfigMap == nil && v.EmptyDir == nil && v.Projected == nil && v.DownwardAPI == nil, "the kind of the volume %s", v.Name)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		s := c.SecurityContext
		if s == nil || s.Capabilities == nil {
			wrong = append(wrong, c.Name+" keeps its capabilities")
			continue
		}
		refuse(s.RunAsUser != nil || yes(s.Privileged) || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation, "%s: %v", c.Name, s)
		refuse(!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0, "%s: %v", c.Name, s.Capabilities)
		for _, p := range c.Ports {
			refuse(p.HostPort != 0, "%s takes a port of the node", c.Name)
		}
	}
	return wrong
}

// TestReleasesShareNoObject renders two releases with one name in two namespaces, which share the cluster, the namespaces of
// their databases and the one of monitoring.
func TestReleasesShareNoObject(t *testing.T) {
	objects := func(namespace string) map[string]bool {
		t.Helper()
		rendered := run(t, command(t, nil, tool(t, "helm"), "template", own, "deploy/chart", "--namespace", namespace, "--kube-version", "1.36",
			"--values", "deploy/chart/ci/everything-values.yaml", "--set", "crds.enabled=false,extraObjects=null"))
		all, err := apiserver.Read(write(t, "rendered.yaml", rendered))
		if err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		for _, o := range all {
			keys[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = true
		}
		return keys
	}
	one, two := objects("one"), objects("two")
	for key := range one {
		if two[key] {
			t.Errorf("both releases have %s", key)
		}
	}
}

// TestOneNamespaceHoldsTheWholeRelease is for an AppProject of Argo CD that allows one namespace and nothing in the cluster.
func TestOneNamespaceHoldsTheWholeRelease(t *testing.T) {
	all, err := apiserver.Read(write(t, "rendered.yaml", template(t, "--values", "deploy/chart/ci/one-project-values.yaml")))
	if err != nil || len(all) < 12 {
		t.Fatalf("%d objects, %v", len(all), err)
	}
	for _, o := range all {
		if o.GetNamespace() != own {
			t.Errorf("%s %s is in %q", o.GetKind(), o.GetName(), o.GetNamespace())
		}
	}
}
