// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/level"
	"github.com/mcsps/rds-autopilot/test/world"
)

// template renders the chart as the release of the documents.
func template(t *testing.T, args ...string) string {
	t.Helper()
	return templateIn(t, releaseName, args...)
}

// templateIn renders the chart as a release in a namespace.
func templateIn(t *testing.T, namespace string, args ...string) string {
	t.Helper()
	args = append([]string{"template", releaseName, "deploy/chart", "--namespace", namespace}, args...)
	return run(t, command(t, nil, tool(t, "helm"), args...))
}

// valueSets returns the files with sets of values, by name.
func valueSets(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(chart + "/ci/*-values.yaml")
	if err != nil || len(files) < 14 {
		t.Fatalf("%v, %v: want 14 sets of values at least", files, err)
	}
	sets := map[string]string{}
	for _, file := range files {
		sets[strings.TrimSuffix(filepath.Base(file), "-values.yaml")] = strings.TrimPrefix(file, root+"/")
	}
	return sets
}

func TestChartUnitTestsPass(t *testing.T) {
	t.Log(run(t, command(t, nil, tool(t, "helm-unittest"), "--strict", "deploy/chart")))
}

// TestTheAPIServerAcceptsEverySetOfValues applies the rendered objects by a server-side dry run, which rejects unknown fields.
func TestTheAPIServerAcceptsEverySetOfValues(t *testing.T) {
	level.Long(t)
	cluster := shared.Cluster(t)
	client, _ := clients(t, cluster.Config())
	for _, name := range []string{releaseName, "shop", "billing", "monitoring", "cattle-monitoring-system"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	minor := kubeMinor(t, cluster.Config())
	for name, values := range valueSets(t) {
		t.Run(name, func(t *testing.T) {
			args := []string{"--values", values, "--kube-version", "1." + strconv.Itoa(minor)}
			if minor < firstWithPolicies {
				args = append(args, "--set", "rbac.admissionPolicy=false")
			}
			file := tempFile(t, "rendered.yaml", template(t, args...))
			objects, err := cluster.Apply(world.Within(t), apiserver.ApplyOptions{DryRun: true}, file)
			must(t, err)
			for _, object := range objects {
				if name == "one-project" && object.GetNamespace() != releaseName {
					t.Errorf("%s %s is in %q", object.GetKind(), object.GetName(), object.GetNamespace())
				}
			}
			if len(objects) < 10 {
				t.Errorf("%d objects", len(objects))
			}
		})
	}
}

// TestRenderedFilesMatchTheChart finds a rendered file that was edited by hand, and a chart whose files were not generated again.
func TestRenderedFilesMatchTheChart(t *testing.T) {
	for name, args := range map[string]string{
		"install.yaml":        "install",
		"rbac.yaml":           "install -s templates/serviceaccount.yaml -s templates/rbac.yaml -s templates/aggregate.yaml",
		"servicemonitor.yaml": "install --set serviceMonitor.enabled=true -s templates/servicemonitor.yaml",
		"alerts.yaml": "install --set prometheusRule.enabled=true --set prometheusRule.changes=true " +
			"-s templates/prometheusrule.yaml",
		"testdata/rendered-defaults.yaml": "default --set crds.enabled=false",
	} {
		values, more, _ := strings.Cut(args, " ")
		args := append(strings.Fields(more), "--values", "deploy/chart/ci/"+values+"-values.yaml")
		if file, rendered := string(read(t, deploy+"/"+name)), template(t, args...); !strings.HasSuffix(file, rendered) {
			t.Errorf("deploy/%s differs from the chart (run make generate and commit; -file +chart):\n%s", name, cmp.Diff(file, rendered))
		}
	}
}

// TestReleasesShareNoObject renders releases that share the cluster, the namespaces of their databases and the one of monitoring.
// Two of them have the same namespace and name, once a dash joins both. Two in one namespace share one object, for which Helm
// refuses the second one.
func TestReleasesShareNoObject(t *testing.T) {
	owner := map[string]string{"PodDisruptionBudget one/rds-autopilot": ""}
	refused := 0
	for _, r := range []struct{ namespace, name string }{{"one", "rds-autopilot"}, {"one-two", "rds-autopilot"}, {"one", "two-rds-autopilot"}} {
		text := templateIn(t, r.namespace, "--kube-version", "1.36", "--values", "deploy/chart/ci/everything-values.yaml",
			"--set", "crds.enabled=false,serviceAccount.name=,fullnameOverride="+r.name)
		objects, err := apiserver.Read(tempFile(t, "rendered.yaml", text))
		must(t, err)
		for _, o := range objects {
			key := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
			if other, inBoth := owner[key]; other != "" {
				t.Errorf("%s is in the releases %s and %s/%s", key, other, r.namespace, r.name)
			} else if inBoth {
				refused++
				continue
			}
			owner[key] = r.namespace + "/" + r.name
		}
	}
	if refused != 2 {
		t.Errorf("%d releases of one namespace have that object, want both", refused)
	}
}

// TestKustomizeSetsTheHost builds the example. Its base is a released version, which the test replaces by this checkout.
func TestKustomizeSetsTheHost(t *testing.T) {
	const base = "https://github.com/mcsps/rds-autopilot//deploy?ref="
	text := string(read(t, deploy+"/examples/overlay/kustomization.yaml"))
	overlay := regexp.MustCompile(`(?m)^- `+regexp.QuoteMeta(base)+`.*$`).ReplaceAllString(text, "- base")
	if overlay == text {
		t.Fatalf("the example is not based on %s", base)
	}
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "base"), 0o700))
	for _, name := range []string{"kustomization.yaml", "install.yaml"} {
		writeFile(t, filepath.Join(dir, "base", name), read(t, deploy+"/"+name))
	}
	writeFile(t, filepath.Join(dir, "kustomization.yaml"), []byte(overlay))
	built := run(t, command(t, nil, tool(t, "kubectl"), "kustomize", dir))
	if strings.Contains(built, "rds-autopilot.example.com") {
		t.Error("the host of the base is left somewhere")
	}
	if n := strings.Count(built, "alarms.my-company.example"); n != 3 {
		t.Errorf("the host occurs %d times, want 3: in the flag, in the rule and in the certificate", n)
	}
}

// TestAdmissionPolicyLimitsTheServiceToTwoFields patches with the rights of the service what RBAC cannot forbid.
func TestAdmissionPolicyLimitsTheServiceToTwoFields(t *testing.T) {
	level.Long(t)
	cluster := shared.Cluster(t)
	if minor := kubeMinor(t, cluster.Config()); minor < firstWithPolicies {
		t.Skipf("Kubernetes 1.%d has no admission policies", minor)
	}
	namespace := cluster.Namespace(t)
	rendered := templateIn(t, namespace, "--show-only", "templates/rbac.yaml", "--show-only", "templates/admissionpolicy.yaml",
		"--set", "publicURL=https://a.example.com/smn,rbac.admissionPolicy=true,watchNamespaces={"+namespace+"}")
	if _, err := cluster.Apply(world.Within(t), apiserver.ApplyOptions{}, tempFile(t, "rights.yaml", rendered)); err != nil {
		t.Fatal(err)
	}
	config, err := cluster.ServiceAccountConfig(world.Within(t), namespace, releaseName)
	must(t, err)
	_, service := clients(t, config)
	_, person := clients(t, cluster.Config())
	resource := otcv1.GroupVersion().WithResource(otcv1.Resource)
	const name = "my-rds"
	_, err = person.Resource(resource).Namespace(namespace).Create(world.Within(t), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": otcv1.GroupVersion().String(), "kind": otcv1.Kind,
		"metadata": map[string]any{"name": name, "labels": map[string]any{"team": "shop"}},
		"spec":     map[string]any{"volumesize": 40, "flavorref": "rds.mysql.c2.medium", "password": "a-long-secret", "users": []any{map[string]any{"name": "app"}}},
		"status":   map[string]any{"id": "an-instance"},
	}}, metav1.CreateOptions{})
	must(t, err)
	patch := func(ctx context.Context, by dynamic.Interface, patch string) error {
		kind := types.MergePatchType
		if strings.HasPrefix(patch, "[") {
			kind = types.JSONPatchType
		}
		_, err := by.Resource(resource).Namespace(namespace).Patch(ctx, name, kind, []byte(patch), metav1.PatchOptions{FieldManager: releaseName})
		return err
	}
	const denied = "rds-autopilot may change"
	attempts := 0
	waitUntil(t, "the policy is in force", func(ctx context.Context) (bool, error) {
		attempts++ // a patch that changes nothing is always allowed
		err := patch(ctx, service, fmt.Sprintf(`{"metadata":{"labels":{"team":"%d"}}}`, attempts))
		return err != nil && strings.Contains(err.Error(), denied), nil // until then RBAC may refuse it
	})
	for name, c := range map[string]struct {
		patch   string
		allowed bool
	}{
		"the size":                 {`[{"op":"replace","path":"/spec/volumesize","value":50}]`, true},
		"the flavor":               {`[{"op":"replace","path":"/spec/flavorref","value":"rds.mysql.c2.large"}]`, true},
		"no field":                 {`{}`, true},
		"the password":             {`{"spec":{"password":"a-longer-secret"}}`, false},
		"the size and a user":      {`{"spec":{"volumesize":60,"users":[{"name":"intruder"}]}}`, false},
		"a field that was not set": {`{"spec":{"endpoint":"https://intruder.example.com"}}`, false},
		"a field that is removed":  {`{"spec":{"password":null}}`, false},
		"the instance":             {`{"status":{"id":"another"}}`, false},
		"the whole status":         {`{"status":null}`, false},
		"a label":                  {`{"metadata":{"labels":{"more":"yes"}}}`, false},
		"the labels":               {`{"metadata":{"labels":null}}`, false},
		"an annotation":            {`{"metadata":{"annotations":{"a":"b"}}}`, false},
		"a finalizer":              {`{"metadata":{"finalizers":["example.com/f"]}}`, false},
	} {
		err := patch(world.Within(t), service, c.patch)
		if allowed := err == nil; allowed != c.allowed || !allowed && !strings.Contains(err.Error(), denied) {
			t.Errorf("the service changes %s: %v, want it allowed: %t", name, err, c.allowed)
		}
		if err := patch(world.Within(t), person, c.patch); name != "a finalizer" && err != nil {
			t.Errorf("a person changes %s: %v", name, err)
		}
	}
}
