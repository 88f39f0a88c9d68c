// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
)

// TestUninstallCheckNamesWhatStillNeedsTheService runs the command with the variables that the chart sets.
func TestUninstallCheckNamesWhatStillNeedsTheService(t *testing.T) {
	t.Parallel()
	kube := shared.Kubernetes(t)
	here, there := kube.Namespace(t), kube.Namespace(t)
	admin, err := dynamic.NewForConfig(kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	create := func(namespace, name string, finalizers ...any) {
		t.Helper()
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.Kind,
			"metadata": map[string]any{"name": name, "finalizers": finalizers}, "spec": map[string]any{"mode": "Off"},
		}}
		autopilots := admin.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(namespace)
		if _, err := autopilots.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := apiserver.WriteKubeconfig(kubeconfig, kube.Config()); err != nil {
		t.Fatal(err)
	}
	check := func(code int, namespaces string, kept ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		env := environment("RDS_AUTOPILOT_WATCH_NAMESPACES="+namespaces, "RDS_AUTOPILOT_LEASE_NAME=otc-rds", "RDS_AUTOPILOT_RELEASE=otc")
		if got := run(t.Context(), append([]string{"uninstall-check", "--kubeconfig", kubeconfig}, kept...), env, &out, &errs); got != code || errs.Len() > 0 {
			t.Errorf("%s: exit code %d, want %d: %s%s", namespaces, got, code, &out, &errs)
		}
		return out.String()
	}

	create(here, "released")
	create(here, "of-others", "example.com/other")
	if text := check(exitOK, here); !strings.Contains(text, "can be uninstalled") {
		t.Errorf("it prints %s", text)
	}
	create(here, "armed", v1alpha1.Finalizer)
	if text := check(exitError, here+","+there); !strings.Contains(text, "1 RdsAutopilots have topics") || !strings.Contains(text, " "+here+"/armed\n") ||
		!strings.Contains(text, "deployment/otc-rds RDS_AUTOPILOT_MODE=Off") || !strings.Contains(text, "helm rollback otc REVISION") || !strings.Contains(text, "--no-hooks") {
		t.Errorf("it prints %s", text)
	}
	check(exitOK, there)
	for i := range 11 {
		create(there, fmt.Sprintf("armed-%02d", i), v1alpha1.Finalizer)
	}
	if text := check(exitError, there); !strings.Contains(text, "armed-09 and 1 more\n") || strings.Contains(text, "armed-10") {
		t.Errorf("it prints %s", text)
	}
	check(exitError, "")

	// Before an upgrade, the chart names those that stay.
	if text := check(exitError, here+","+there, here); strings.Contains(text, here+"/") || !strings.Contains(text, "Keep their namespaces in watchNamespaces") {
		t.Errorf("%s leaves, and it prints %s", there, text)
	}
	if text := check(exitOK, here+","+there, here, there); !strings.Contains(text, "can leave watchNamespaces") {
		t.Errorf("none leaves, and it prints %s", text)
	}
}
