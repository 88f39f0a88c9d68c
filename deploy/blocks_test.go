// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// eachYAMLBlock calls f with every block of YAML in the documents.
func eachYAMLBlock(t *testing.T, f func(file string, block map[string]any)) {
	t.Helper()
	for _, file := range documents(t) {
		for _, m := range regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$").FindAllStringSubmatch(document(t, file), -1) {
			text := regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[2], "")
			var block map[string]any
			if err := yaml.UnmarshalStrict([]byte(text), &block); err != nil {
				t.Errorf("%s: %v in\n%s", file, err, text)
				continue
			}
			f(file, block)
		}
	}
}

func TestAPIServerAcceptsTheManifestsOfTheDocuments(t *testing.T) {
	client, found := admin(t), 0
	eachYAMLBlock(t, func(file string, block map[string]any) {
		if block["kind"] == nil {
			return
		}
		found++
		object := &unstructured.Unstructured{Object: block}
		object.SetNamespace("default")
		if object.GetName() == "" {
			object.SetName("x")
		}
		if _, err := dryRun(t, client, "default", object); err != nil {
			t.Errorf("%s: %v in %v", file, err, block)
		}
	})
	if found == 0 {
		t.Error("no document has a manifest")
	}
}

// A block without a kind has values of the chart, or it is a part of a configuration of Argo CD, Flux or kube-state-metrics.
func TestDocumentsNameValuesAndFieldsThatExist(t *testing.T) {
	values := valuesSchema(t)
	seen := map[string]int{}
	eachYAMLBlock(t, func(file string, block map[string]any) {
		spec, _ := block["spec"].(map[string]any)
		switch {
		case block["kind"] != nil || block["metadata"] != nil || block["data"] != nil || block["customResourceState"] != nil:
		case spec["ignoreDifferences"] != nil || spec["ignore"] != nil:
			seen["ignored fields"]++
			for _, field := range slices.Concat(ignoredFields(spec["ignoreDifferences"]), ignoredFields(spec["ignore"])) {
				if !hasField(schemaOf(t, rdsCRD), strings.Split(strings.TrimPrefix(field, "/"), "/")) {
					t.Errorf("%s ignores %s, which an Rds does not have", file, field)
				}
			}
		default:
			seen["values"]++
			for _, path := range paths(block, nil) {
				if !hasField(values, path) {
					t.Errorf("%s sets %s, which the chart does not have", file, strings.Join(path, "."))
				}
			}
		}
	})
	for _, file := range documents(t) {
		for _, m := range regexp.MustCompile(`--set(?:-string)?[ =]([\w.-]+)=`).FindAllStringSubmatch(document(t, file), -1) {
			seen["--set"]++
			if !hasField(values, strings.Split(m[1], ".")) {
				t.Errorf("%s sets %s, which the chart does not have", file, m[1])
			}
		}
	}
	if seen["ignored fields"] == 0 || seen["values"] == 0 || seen["--set"] == 0 {
		t.Errorf("found only %v", seen)
	}
}

// ignoredFields returns the JSON pointers that a list of Argo CD or Flux ignores of an Rds.
func ignoredFields(differences any) (pointers []string) {
	list, _ := differences.([]any)
	for _, d := range list {
		difference := d.(map[string]any)
		for _, name := range []string{"jsonPointers", "paths"} {
			fields, _ := difference[name].([]any)
			for _, field := range fields {
				pointers = append(pointers, field.(string))
			}
		}
	}
	return pointers
}

func valuesSchema(t *testing.T) (schema map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(document(t, "deploy/chart/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

func properties(schema map[string]any) map[string]any {
	found, _ := schema["properties"].(map[string]any)
	return found
}

// hasField reports whether a schema has that field. A map of any names has all fields. An object without a schema has none.
func hasField(schema map[string]any, path []string) bool {
	for _, name := range path {
		next, ok := properties(schema)[name].(map[string]any)
		if _, open := schema["additionalProperties"].(map[string]any); open && !ok {
			return true
		}
		if !ok {
			return false
		}
		schema = next
	}
	return len(path) > 0
}

// paths returns the paths to all values that are no objects.
func paths(value map[string]any, to []string) (all [][]string) {
	for name, inner := range value {
		path := append(slices.Clone(to), name)
		if object, ok := inner.(map[string]any); ok {
			all = append(all, paths(object, path)...)
			continue
		}
		all = append(all, path)
	}
	return all
}

func TestChartSchemaAcceptsEveryFlagOfServe(t *testing.T) {
	// The chart has values of their own for these, or fixes them in the pod.
	elsewhere := []string{
		"public-url", "mode", "watch-namespaces", "webhook-addr", "admin-addr", "kubeconfig", "context", "lease-namespace",
		"system-namespace", "leader-elect",
	}
	var flags []string
	for _, row := range tables(t, "docs/command-line.md", "serve")[0] {
		if flag := strings.TrimPrefix(quoted(row[0])[0], "--"); !slices.Contains(elsewhere, flag) {
			flags = append(flags, flag)
		}
	}
	values := properties(valuesSchema(t))
	compare(t, "flags in deploy/chart/values.schema.json",
		slices.Collect(maps.Keys(properties(values["flags"].(map[string]any)))), flags)
}
