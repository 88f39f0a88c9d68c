package deploy_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestKubectlGetShowsWhatMatters asks the API server for the table that kubectl prints.
func TestKubectlGetShowsWhatMatters(t *testing.T) {
	config := shared.Cluster(t).Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/apis/autopilot.otc.mcsps.de/v1alpha1/rdsautopilots", nil)
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
	var columns []string
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, c.Name)
	}
	want := []string{"Name", "MODE", "ARMED", "VOLUME", "MAX", "FLAVOR", "LAST CHANGE", "LAST DECISION", "AGE"}
	if diff := cmp.Diff(want, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}
