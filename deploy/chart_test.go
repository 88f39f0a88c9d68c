// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// schemaNode is the part of a JSON schema that is compared.
type schemaNode struct {
	Properties map[string]schemaNode `json:"properties"`
	Items      struct {
		Pattern string `json:"pattern"`
	} `json:"items"`
	Deprecated bool `json:"deprecated"` // a former name, which a template refuses with the new name
}

func chartSchema(t *testing.T) schemaNode {
	t.Helper()
	var schema schemaNode
	if err := json.Unmarshal([]byte(document(t, "deploy/chart/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestChartSchemaAcceptsEveryFlagOfServe(t *testing.T) {
	// Values of their own, or fixed in a pod.
	elsewhere := []string{"public-url", "mode", "watch-namespaces", "webhook-addr", "admin-addr", "kubeconfig", "context", "lease-namespace", "lease-name", "system-namespace"}
	var flags []string
	for _, row := range tables(t, "docs/command-line.md", "serve")[0] {
		if flag := strings.TrimPrefix(quoted(row[0])[0], "--"); !slices.Contains(elsewhere, flag) {
			flags = append(flags, flag)
		}
	}
	slices.Sort(flags)
	taken := slices.Sorted(maps.Keys(chartSchema(t).Properties["flags"].Properties))
	if diff := cmp.Diff(flags, taken); diff != "" {
		t.Errorf("flags in deploy/chart/values.schema.json (-docs/command-line.md +schema):\n%s", diff)
	}
	want := "^--(" + strings.Join(flags, "|") + ")(=.*)?$"
	if got := chartSchema(t).Properties["extraArgs"].Items.Pattern; got != want {
		t.Errorf("extraArgs in deploy/chart/values.schema.json accepts %s, want %s", got, want)
	}
}

// TestChartValuesShowEveryValueOfTheSchema finds a value that the schema allows and values.yaml does not show.
func TestChartValuesShowEveryValueOfTheSchema(t *testing.T) {
	var values map[string]any
	if err := yaml.UnmarshalStrict([]byte(document(t, "deploy/chart/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	compareValues(t, "", chartSchema(t), values)
}

func compareValues(t *testing.T, path string, schema schemaNode, values map[string]any) {
	t.Helper()
	for name, node := range schema.Properties {
		value, shown := values[name]
		if shown == node.Deprecated {
			t.Errorf("values.yaml shows %s%s: %t, deprecated: %t", path, name, shown, node.Deprecated)
		}
		if inner, ok := value.(map[string]any); ok && path+name != "flags" {
			compareValues(t, path+name+".", node, inner)
		}
	}
	for name := range values {
		if _, known := schema.Properties[name]; !known && len(schema.Properties) > 0 {
			t.Errorf("the schema does not know %s%s", path, name)
		}
	}
}
