// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

const referenceHead = `# The resource RdsAutopilot

With this page you look up each field of the resource, with its type, limits and default.

Written by ` + "`make generate`" + ` from the types in ` + "`k8s/api/autopilot/v1alpha1`" + `; do not edit. ` + "`kubectl explain rdsautopilot.spec`" + `
says the same. API version ` + "`autopilot.otc.mcsps.de/v1alpha1`" + `, short name ` + "`rap`" + `.

The spec is yours, the status is the service's. [Decisions](decisions.md) explains what the fields do.
`

// TestReferenceIsGenerated compares docs/reference.md with the schema; -update writes it.
func TestReferenceIsGenerated(t *testing.T) {
	properties := schemaOf(t, autopilotCRD)["properties"].(map[string]any)
	text := referenceHead
	for _, name := range []string{"spec", "status"} {
		text += describeObject(name, properties[name].(map[string]any))
	}
	checkGenerated(t, "docs/reference.md", document(t, "docs/reference.md"), text)
}

// describeObject is a section with a table of an object's fields, and one for each object among them.
func describeObject(path string, schema map[string]any) string {
	var rows, sections strings.Builder
	properties := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		field := properties[name].(map[string]any)
		kind, inner := fmt.Sprint(field["type"]), field
		if items, ok := field["items"].(map[string]any); ok {
			kind, inner = "list of "+fmt.Sprint(items["type"]), items
		}
		if _, ok := inner["properties"]; ok {
			sections.WriteString(describeObject(path+"."+name, inner))
			name = fmt.Sprintf("[%s](#%s)", name, strings.ToLower(strings.ReplaceAll(path+name, ".", "")))
		}
		if format, ok := inner["format"].(string); ok && kind == "string" {
			kind = format
		}
		description, _ := field["description"].(string)
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", name, kind, strings.ReplaceAll(strings.Join(strings.Fields(description), " "), "|", "\\|"))
	}
	description, _ := schema["description"].(string)
	return fmt.Sprintf("\n## %s\n\n%s\n\n| field | type | meaning |\n|---|---|---|\n%s%s", path, strings.Join(strings.Fields(description), " "), rows.String(), sections.String())
}
