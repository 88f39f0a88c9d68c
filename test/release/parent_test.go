// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

// TestNullSectionsGetTheirDefaults sets all sections to null at once, as "flags:" with only comments below it does.
func TestNullSectionsGetTheirDefaults(t *testing.T) {
	var values map[string]any
	if err := yaml.Unmarshal(read(t, chart+"/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	// The API server or the service needs these numbers and words.
	required := []string{"publicURL", "replicaCount", "terminationGracePeriodSeconds", "mode", "systemNamespace"}
	sections := ""
	for name, value := range values {
		if _, ok := value.(map[string]any); ok && name != "podSecurityContext" && name != "resources" {
			sections += name + ":\n"
		} else if !slices.Contains(required, name) {
			t.Run(name, func(t *testing.T) {
				template(t, "--values", "deploy/chart/ci/default-values.yaml", "--set", name+"=null")
			})
		}
	}
	want := template(t, "--values", "deploy/chart/ci/default-values.yaml")
	for name, null := range map[string]string{
		"sections":             sections,
		"sections in sections": "monitoring:\n  dashboard:\n  kubeStateMetrics:\n",
	} {
		got := template(t, "--values", "deploy/chart/ci/default-values.yaml", "--values", tempFile(t, "null.yaml", null))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with null in %s (-defaults +null):\n%s", name, diff)
		}
	}
}

// parentChart makes a chart that has ours as a dependency, and returns its folder.
func parentChart(t *testing.T, values string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "charts", "rds-autopilot"), os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir+"/Chart.yaml", []byte("apiVersion: v2\nname: parent\nversion: 1.0.0\ndependencies:\n- name: rds-autopilot\n"+
		"  version: 0.1.0\n  condition: rds-autopilot.enabled\n"))
	writeFile(t, dir+"/values.yaml", []byte(values))
	return dir
}

// TestUserAndGroupCanBeLeftOut tries each way to leave them out, because OpenShift's SCC restricted-v2 refuses ids outside the
// range of the namespace.
func TestUserAndGroupCanBeLeftOut(t *testing.T) {
	helm := tool(t, "helm")
	ids := regexp.MustCompile(`(?m)^ *(runAsUser|runAsGroup|fsGroup): .*$`)
	values := func(empty string) string {
		return "rds-autopilot:\n  publicURL: https://a.example.com/smn\n  podSecurityContext:\n    runAsUser: " + empty + "\n    runAsGroup: " + empty +
			"\n    fsGroup: " + empty + "\n"
	}
	openShift := []string{"--api-versions", "security.openshift.io/v1"}
	for name, args := range map[string][]string{
		"empty values of a parent chart":             {parentChart(t, values(`""`))},
		"null in the values of the user":             {parentChart(t, values("1")), "--values", tempFile(t, "null.yaml", values("null"))},
		"null values of a parent chart on OpenShift": append(openShift, parentChart(t, values("null"))),
		"the values for OpenShift":                   {"deploy/chart", "--values", "deploy/chart/ci/openshift-values.yaml"},
		"the defaults on OpenShift":                  append(openShift, "deploy/chart", "--values", "deploy/chart/ci/default-values.yaml"),
	} {
		t.Run(name, func(t *testing.T) {
			rendered := run(t, command(t, nil, helm, append([]string{"template", releaseName}, args...)...))
			if found := ids.FindAllString(rendered, -1); len(found) > 0 {
				t.Errorf("the chart sets %q", found)
			}
		})
	}
}

// rendered returns the objects of a release with all values. It leaves the definition out, which all releases share.
func rendered(t *testing.T, release, namespace string, args ...string) []*unstructured.Unstructured {
	t.Helper()
	args = append([]string{"template", release, "deploy/chart", "--namespace", namespace, "--kube-version", "1.36",
		"--values", "deploy/chart/ci/everything-values.yaml", "--set", "crds.enabled=false"}, args...)
	objects, err := apiserver.Read(tempFile(t, "rendered.yaml", run(t, command(t, nil, tool(t, "helm"), args...))))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestReleasesShareNoObject renders releases that share the cluster, the namespaces of their databases and the one of monitoring.
// Two of them have the same namespace and name, once a dash joins both.
func TestReleasesShareNoObject(t *testing.T) {
	owner := map[string]string{}
	for _, r := range []struct{ namespace, name string }{{"one", "rds-autopilot"}, {"one-two", "rds-autopilot"}, {"one", "two-rds-autopilot"}} {
		for _, o := range rendered(t, r.name, r.namespace, "--set", "fullnameOverride="+r.name+",serviceAccount.name=") {
			key := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
			if other := owner[key]; other != "" {
				t.Errorf("%s is in the releases %s and %s/%s", key, other, r.namespace, r.name)
			}
			owner[key] = r.namespace + "/" + r.name
		}
	}
}

// TestNamesThatYAMLReadsAsOtherTypesStayText renders the chart with such names everywhere, and with other ones of equal length.
func TestNamesThatYAMLReadsAsOtherTypesStayText(t *testing.T) {
	odd := []string{"1e3", "no", "0x1", "on", "0123", "1.5", "yes", "null", "12"}
	plain := []string{"aaa", "bb", "ccc", "dd", "eeee", "f-g", "hhh", "iiii", "jk"}
	render := func(names []string) []*unstructured.Unstructured {
		settings := ""
		for i, value := range []string{
			"nameOverride", "serviceAccount.name", "watchNamespaces[0]", "credentials.existingSecret", "credentials.cloud", "ingress.className",
			"monitoring.namespace",
		} {
			settings += value + "=" + names[i+2] + ","
		}
		return rendered(t, names[0], names[1], "--set", "fullnameOverride=", "--set-string", strings.TrimSuffix(settings, ","))
	}
	var replace []string
	for i, name := range plain {
		replace = append(replace, name, odd[i])
	}
	replaced := func(object *unstructured.Unstructured) string {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return strings.NewReplacer(replace...).Replace(string(text))
	}
	want, got := render(plain), render(odd)
	for i := range want {
		if diff := cmp.Diff(replaced(want[i]), replaced(got[i])); diff != "" {
			t.Errorf("%s (-with other names +with these):\n%s", want[i].GetKind(), diff)
		}
	}
}

// TestOneNamespaceHoldsTheWholeRelease is for an AppProject of Argo CD that allows one namespace and nothing in the cluster.
func TestOneNamespaceHoldsTheWholeRelease(t *testing.T) {
	all, err := apiserver.Read(tempFile(t, "rendered.yaml", template(t, "--values", "deploy/chart/ci/one-project-values.yaml")))
	if err != nil || len(all) < 10 {
		t.Fatalf("%d objects, %v", len(all), err)
	}
	for _, o := range all {
		if o.GetNamespace() != releaseName {
			t.Errorf("%s %s is in %q", o.GetKind(), o.GetName(), o.GetNamespace())
		}
	}
}
