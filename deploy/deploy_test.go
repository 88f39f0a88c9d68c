// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"fmt"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

const (
	rdsCRD       = "crds/rds.yaml"
	autopilotCRD = "crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"
)

var (
	rdss          = schema.GroupVersionResource{Group: "otc.mcsps.de", Version: "v1alpha1", Resource: "rdss"}
	rdsautopilots = schema.GroupVersionResource{Group: "autopilot.otc.mcsps.de", Version: "v1alpha1", Resource: "rdsautopilots"}
	resources     = map[string]schema.GroupVersionResource{"Rds": rdss, "RdsAutopilot": rdsautopilots}
)

var shared = apiserver.Shared{Options: apiserver.Options{
	CRDs: []string{rdsCRD, autopilotCRD, "testdata/servicemonitor-crd.yaml", "testdata/prometheusrule-crd.yaml"},
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// must fails the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func admin(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(shared.Cluster(t).Config())
	must(t, err)
	return client
}

// dryRun lets the API server check and default an object of ours strictly. It stores nothing.
func dryRun(t *testing.T, client dynamic.Interface, namespace string, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	resource, ok := resources[object.GetKind()]
	if !ok {
		return nil, fmt.Errorf("no kind %s", object.GetKind())
	}
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	return client.Resource(resource).Namespace(namespace).Create(t.Context(), object, options)
}

// newObject returns an object of ours named x. An empty spec leaves the field out.
func newObject(t *testing.T, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{
		"apiVersion": resources[kind].GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": "x"},
	}
	if spec != "" {
		object["spec"] = decoded(t, spec)
	}
	return &unstructured.Unstructured{Object: object}
}

// decoded returns a YAML object with the types of an unstructured.Unstructured.
func decoded(t *testing.T, text string) (fields map[string]any) {
	t.Helper()
	encoded, err := yaml.YAMLToJSONStrict([]byte(text))
	if err == nil {
		err = json.Unmarshal(encoded, &fields)
	}
	must(t, err)
	return fields
}

// read returns the objects of a file.
func read(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := apiserver.Read(file)
	must(t, err)
	return objects
}

// at returns the value at a path of field names and list positions.
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
