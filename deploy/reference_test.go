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

` + "`kubectl explain rdsautopilot.spec`" + ` shows the same. API version ` + "`autopilot.otc.mcsps.de/v1alpha1`" + `, short name
` + "`rap`" + `. ` + "`make generate`" + ` writes this page.

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

// describeObject is a section with a table of an object's fields, and one for each object among them, which has its meaning.
func describeObject(path string, schema map[string]any) string {
	var rows, sections strings.Builder
	properties := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		field := properties[name].(map[string]any)
		kind, inner := fmt.Sprint(field["type"]), field
		if items, ok := field["items"].(map[string]any); ok {
			kind, inner = "list of "+fmt.Sprint(items["type"]), items
		}
		text := meaning(name, field)
		if _, ok := inner["properties"]; ok {
			sections.WriteString(describeObject(path+"."+name, inner))
			if kind == "object" {
				text = ""
			}
			name = fmt.Sprintf("[%s](#%s)", name, strings.ToLower(strings.ReplaceAll(path+name, ".", "")))
		}
		if format, ok := inner["format"].(string); ok && kind == "string" {
			kind = format
		}
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", name, kind, strings.ReplaceAll(text, "|", "\\|"))
	}
	return fmt.Sprintf("\n## %s\n\n%s\n\n| field | type | meaning |\n|---|---|---|\n%s%s",
		path, meaning(path[strings.LastIndex(path, ".")+1:], schema), rows.String(), sections.String())
}

// meaning returns the description of a field without the field's name, with which the comment begins.
func meaning(name string, schema map[string]any) string {
	description, _ := schema["description"].(string)
	words := strings.Fields(description)
	if len(words) > 2 && words[0] == name {
		if words = words[1:]; words[0] == "is" || words[0] == "are" {
			words = words[1:]
		}
		words[0] = strings.ToUpper(words[0][:1]) + words[0][1:]
	}
	return strings.Join(words, " ")
}
