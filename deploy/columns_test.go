// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// table returns the table that kubectl prints of a resource in a namespace.
func table(t *testing.T, resource schema.GroupVersionResource, namespace string) metav1.Table {
	t.Helper()
	config := shared.Cluster(t).Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	path := "/apis/" + resource.GroupVersion().String() + "/namespaces/" + namespace + "/" + resource.Resource
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var table metav1.Table
	if err := json.NewDecoder(resp.Body).Decode(&table); err != nil {
		t.Fatal(err)
	}
	return table
}

func TestKubectlGetShowsTheColumns(t *testing.T) {
	namespace := shared.Cluster(t).Namespace(t)
	for _, test := range []struct {
		resource schema.GroupVersionResource
		want     []string
	}{
		{rdsautopilots, []string{"Name", "MODE", "ARMED", "VOLUME", "MAX", "FLAVOR", "LAST CHANGE", "LAST DECISION", "AGE", "USED", "READY", "REASON"}},
		{rdss, []string{"Name", "ENGINE", "VERSION", "VOLUME", "FLAVOR", "STATUS", "IP", "AGE"}},
	} {
		var columns []string
		for _, c := range table(t, test.resource, namespace).ColumnDefinitions {
			columns = append(columns, c.Name)
			if wide := c.Name == "USED" || c.Name == "READY" || c.Name == "REASON" || c.Name == "IP"; wide != (c.Priority > 0) {
				t.Errorf("column %s of %s has priority %d", c.Name, test.resource.Resource, c.Priority)
			}
		}
		if diff := cmp.Diff(test.want, columns); diff != "" {
			t.Errorf("columns of %s (-want +got):\n%s", test.resource.Resource, diff)
		}
	}
}

func TestKubectlGetShowsTheSummaryOfTheStatus(t *testing.T) {
	namespace := shared.Cluster(t).Namespace(t)
	client := admin(t).Resource(rdsautopilots).Namespace(namespace)
	if _, err := client.Create(t.Context(), newObject(t, rdsautopilots, "RdsAutopilot", `{}`), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	status := `{"status":{"maxGB":160,"effectiveMode":"Recommend","summary":{"volume":"50 GB","max":"160 GB","used":"83 %","lastChange":"40 → 50 GB","lastDecision":"AlarmInForce (storage)"}}}`
	options := metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}
	if _, err := client.Patch(t.Context(), "x", "application/merge-patch+json", []byte(status), options, "status"); err != nil {
		t.Fatal(err)
	}
	got := table(t, rdsautopilots, namespace).Rows[0].Cells
	want := []any{"x", "Recommend", nil, "50 GB", "160 GB", nil, "40 → 50 GB", "AlarmInForce (storage)"}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"83 %", "Unknown", "NotYet"}, got[len(want)+1:]); diff != "" {
		t.Errorf("cells of -o wide (-want +got):\n%s", diff)
	}
}

// Tools that wait for health, such as kstatus, count a resource without conditions as healthy.
func TestNewRdsAutopilotIsReadyUnknown(t *testing.T) {
	client := admin(t).Resource(rdsautopilots).Namespace(shared.Cluster(t).Namespace(t))
	made, err := client.Create(t.Context(), newObject(t, rdsautopilots, "RdsAutopilot", `{}`), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conditions, _, err := unstructured.NestedSlice(made.Object, "status", "conditions")
	if err != nil || len(conditions) != 1 {
		t.Fatalf("conditions %v, %v", conditions, err)
	}
	if c := conditions[0].(map[string]any); c["type"] != "Ready" || c["status"] != "Unknown" {
		t.Errorf("condition %v", c)
	}
}
