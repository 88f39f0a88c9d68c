// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"regexp"
	"strconv"
	"testing"
)

// fieldsKey is the annotation of the CRD by which the chart's guard knows the newer of two definitions.
const fieldsKey = "autopilot.otc.mcsps.de/fields"

// TestTheNumberOfFieldsIsGenerated writes the number with -update. Versions only add fields, so it only grows.
func TestTheNumberOfFieldsIsGenerated(t *testing.T) {
	n := 0
	eachProperty("", schemaOf(t, autopilotCRD), func(string, map[string]any) { n++ })
	if n < 100 {
		t.Fatalf("%d fields", n)
	}
	line := regexp.MustCompile(`(?m)^  annotations:\n(?:    ` + regexp.QuoteMeta(fieldsKey) + `: .*\n)?`)
	for _, file := range []string{autopilotCRD, "chart/files/rdsautopilots.yaml"} {
		text := document(t, "deploy/"+file)
		if len(line.FindAllString(text, -1)) != 1 {
			t.Fatalf("%s has no annotations", file)
		}
		checkGenerated(t, "deploy/"+file, text, line.ReplaceAllLiteralString(text, "  annotations:\n    "+fieldsKey+": "+strconv.Quote(strconv.Itoa(n))+"\n"))
	}
}
