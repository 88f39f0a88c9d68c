// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// TestDocumentsYAMLNamesFieldsThatExist reads every block of YAML in the documents: manifests, parts of manifests, values of the
// chart, and configurations of GitOps tools for our resources.
func TestDocumentsYAMLNamesFieldsThatExist(t *testing.T) {
	values := valuesSchema(t)
	seen := map[string]int{}
	for _, file := range documents(t) {
		for _, text := range yamlBlocks(document(t, file)) {
			var block map[string]any
			if err := yaml.UnmarshalStrict([]byte(text), &block); err != nil {
				t.Errorf("%s: %v in\n%s", file, err, text)
				continue
			}
			kind, err := checkBlock(t, block, values)
			if err != nil {
				t.Errorf("%s: %v in\n%s", file, err, text)
			}
			seen[kind]++
		}
	}
	for _, kind := range []string{"manifest", "Argo CD", "health", "Flux", "values", "another chart"} {
		if seen[kind] == 0 {
			t.Errorf("no document has a block for %q: %v", kind, seen)
		}
	}
}

// The keys of --set in the documents' commands are values of the chart.
func TestDocumentsCommandsSetValuesThatExist(t *testing.T) {
	values, found := valuesSchema(t), 0
	for _, file := range documents(t) {
		for _, m := range regexp.MustCompile(`--set(?:-string)?[ =]([\w.-]+)=`).FindAllStringSubmatch(document(t, file), -1) {
			found++
			if !hasField(values, strings.Split(m[1], ".")) {
				t.Errorf("%s sets %s, which the chart does not have", file, m[1])
			}
		}
	}
	if found == 0 {
		t.Error("no document sets a value")
	}
}

func yamlBlocks(text string) (all []string) {
	for _, m := range regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$").FindAllStringSubmatch(text, -1) {
		all = append(all, regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[2], ""))
	}
	return all
}

// checkBlock returns the kind of a block, and an error for a name in it that does not exist.
func checkBlock(t *testing.T, block map[string]any, values map[string]any) (kind string, err error) {
	t.Helper()
	spec, _ := block["spec"].(map[string]any)
	metadata, _ := block["metadata"].(map[string]any)
	switch {
	case block["kind"] != nil:
		return "manifest", dryRun(t, block)
	case spec["ignoreDifferences"] != nil:
		return "Argo CD", ignored(t, spec["ignoreDifferences"])
	case spec["ignore"] != nil:
		return "Flux", ignored(t, spec["ignore"])
	case block["data"] != nil:
		return "health", customized(t, block["data"])
	case metadata != nil:
		for _, name := range slices.Sorted(maps.Keys(metadata["annotations"].(map[string]any))) {
			if name != "kustomize.toolkit.fluxcd.io/ssa" {
				err = fmt.Errorf("the annotation %s is not known", name)
			}
		}
		return "Flux", err
	case block["customResourceState"] != nil:
		return "another chart", nil // that of kube-state-metrics
	}
	for _, path := range paths(block, nil) {
		if !hasField(values, path) {
			return "values", fmt.Errorf("the chart has no value %s", strings.Join(path, "."))
		}
	}
	return "values", nil
}

// dryRun lets the API server check a manifest strictly.
func dryRun(t *testing.T, block map[string]any) error {
	t.Helper()
	object := &unstructured.Unstructured{Object: block}
	resources := map[string]schema.GroupVersionResource{"Rds": rdss, "RdsAutopilot": rdsautopilots}
	resource, ok := resources[object.GetKind()]
	if !ok {
		return fmt.Errorf("no kind %s", object.GetKind())
	}
	object.SetNamespace("default")
	if object.GetName() == "" {
		object.SetName("x")
	}
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	_, err := admin(t).Resource(resource).Namespace("default").Create(t.Context(), object, options)
	return err
}

// ignored checks the fields that Argo CD must ignore.
func ignored(t *testing.T, differences any) error {
	t.Helper()
	for _, d := range differences.([]any) {
		difference := d.(map[string]any)
		paths, _ := difference["paths"].([]any)
		if target, ok := difference["target"].(map[string]any); ok { // of Flux; the rest is of Argo CD
			difference = target
		}
		fields, err := kindSchema(t, fmt.Sprint(difference["group"]), fmt.Sprint(difference["kind"]))
		if err != nil {
			return err
		}
		pointers, _ := difference["jsonPointers"].([]any)
		expressions, _ := difference["jqPathExpressions"].([]any)
		for _, p := range slices.Concat(paths, pointers, expressions) {
			if !hasField(fields, strings.FieldsFunc(fmt.Sprint(p), func(r rune) bool { return r == '/' || r == '.' })) {
				return fmt.Errorf("there is no field %s", p)
			}
		}
		if len(paths)+len(pointers)+len(expressions) == 0 {
			return fmt.Errorf("%s names no field", difference["kind"])
		}
	}
	return nil
}

// customized checks the health scripts of Argo CD for our kinds.
func customized(t *testing.T, data any) error {
	t.Helper()
	for key, script := range data.(map[string]any) {
		name, ok := strings.CutPrefix(key, "resource.customizations.health.")
		group, kind, named := strings.Cut(name, "_")
		if !ok || !named {
			return fmt.Errorf("%s is no customization", key)
		}
		if _, err := kindSchema(t, group, kind); err != nil {
			return err
		}
		conditions := []string{v1alpha1.ConditionReady, v1alpha1.ConditionArmed, v1alpha1.ConditionProgressing, v1alpha1.ConditionLimited, v1alpha1.ConditionContested}
		for _, m := range regexp.MustCompile(`c\.type == "(\w+)"`).FindAllStringSubmatch(fmt.Sprint(script), -1) {
			if !slices.Contains(conditions, m[1]) {
				return fmt.Errorf("there is no condition %s", m[1])
			}
		}
	}
	return nil
}

// kindSchema returns the schema of a kind in our CRDs.
func kindSchema(t *testing.T, group, kind string) (map[string]any, error) {
	t.Helper()
	file, ok := map[string]string{"otc.mcsps.de Rds": rdsCRD, "autopilot.otc.mcsps.de RdsAutopilot": autopilotCRD}[group+" "+kind]
	if !ok {
		return nil, fmt.Errorf("there is no kind %s in %s", kind, group)
	}
	return schemaOf(t, file), nil
}

func valuesSchema(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("chart/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// hasField reports whether a schema has that field. A map of any names has all fields. An object without a schema has none.
func hasField(s map[string]any, path []string) bool {
	for _, name := range path {
		properties, _ := s["properties"].(map[string]any)
		next, ok := properties[name].(map[string]any)
		if _, open := s["additionalProperties"].(map[string]any); open && !ok {
			return true
		}
		if !ok || next["deprecated"] == true {
			return false
		}
		s = next
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
