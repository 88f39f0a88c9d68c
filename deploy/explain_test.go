// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

// schemaOf returns the schema of the only version of a CRD.
func schemaOf(t *testing.T, file string) map[string]any {
	t.Helper()
	objects, err := apiserver.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return at(t, objects[0], "spec", "versions", 0, "schema", "openAPIV3Schema").(map[string]any)
}

// eachProperty calls f with every property below a schema, and its path.
func eachProperty(path string, schema map[string]any, f func(path string, property map[string]any)) {
	if items, ok := schema["items"].(map[string]any); ok {
		eachProperty(path+"[]", items, f)
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property := properties[name].(map[string]any)
		f(path+"."+name, property)
		eachProperty(path+"."+name, property, f)
	}
}

// TestKubectlExplainGivesLimitsDefaultsAndUnits reads the descriptions as somebody does who has nothing else.
func TestKubectlExplainGivesLimitsDefaultsAndUnits(t *testing.T) {
	number := regexp.MustCompile(`-?[0-9]+`)
	root := schemaOf(t, autopilotCRD)
	eachProperty("", root, func(path string, property map[string]any) {
		text, _ := property["description"].(string)
		if text == "" && path != ".metadata" {
			t.Errorf("%s has no description", path)
		}
		if !strings.HasPrefix(path, ".spec.") || property["type"] == "object" {
			return
		}
		if strings.HasSuffix(path, "[]") {
			return
		}
		named := number.FindAllString(text, -1)
		for _, key := range []string{"minimum", "maximum"} {
			if limit := property[key]; limit != nil && !slices.Contains(named, fmt.Sprint(limit)) {
				t.Errorf("%s: %q does not say that the %s is %v", path, text, key, limit)
			}
		}
		values, _, _ := unstructured.NestedSlice(property, "enum")
		for _, value := range values {
			if !strings.Contains(text, fmt.Sprint(value)) {
				t.Errorf("%s: %q does not name %v", path, text, value)
			}
		}
		if !strings.Contains(text, "Default: ") && !strings.Contains(text, "Required.") {
			t.Errorf("%s: %q does not say what holds without it", path, text)
		}
		if value := property["default"]; value != nil && !strings.HasSuffix(text, fmt.Sprintf("Default: %v.", value)) {
			t.Errorf("%s: %q does not say that the default is %v", path, text, value)
		}
		for suffix, unit := range map[string]string{"GB": "GB", "Percent": "percent", "Seconds": "seconds"} {
			if rest, _ := strings.CutPrefix(text, path[strings.LastIndex(path, ".")+1:]); strings.HasSuffix(path, suffix) && !strings.Contains(rest, unit) {
				t.Errorf("%s: %q does not say that it is in %s", path, text, unit)
			}
		}
	})
}
