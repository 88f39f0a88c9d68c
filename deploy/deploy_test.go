// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

var shared = apiserver.Shared{Options: apiserver.Options{CRDs: []string{rdsCRD, autopilotCRD, "testdata/servicemonitor-crd.yaml", "testdata/prometheusrule-crd.yaml"}}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func admin(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(shared.Cluster(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// create lets the server check an object named x with that spec, and keeps nothing.
func create(t *testing.T, client dynamic.ResourceInterface, resource schema.GroupVersionResource, kind, spec string) (*unstructured.Unstructured, error) {
	t.Helper()
	return client.Create(t.Context(), newObject(t, resource, kind, spec), metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
}

func newObject(t *testing.T, resource schema.GroupVersionResource, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": "x"},
	}
	if spec != "" {
		var fields map[string]any
		if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
			t.Fatal(err)
		}
		object["spec"] = fields
	}
	return &unstructured.Unstructured{Object: object}
}
