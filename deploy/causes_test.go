// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/autopilot/insight"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// causes returns the causes that status.insight.cause may have, in alphabetical order.
func causes(t *testing.T) (names []string) {
	t.Helper()
	eachProperty("", schemaOf(t, autopilotCRD), func(path string, property map[string]any) {
		if path != ".status.insight.cause.name" {
			return
		}
		for _, v := range property["enum"].([]any) {
			names = append(names, v.(string))
		}
	})
	if len(names) == 0 {
		t.Fatal("the CRD lists no causes")
	}
	slices.Sort(names)
	return names
}

// TestEachCauseHasItsPage looks for the page that a message names, with a statement to run and a remedy.
func TestEachCauseHasItsPage(t *testing.T) {
	folder := "docs/runbooks/causes"
	files, err := os.ReadDir("../" + folder)
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for _, f := range files {
		pages = append(pages, folder+"/"+f.Name())
	}
	var want []string
	for _, cause := range causes(t) {
		want = append(want, insight.CausePage(v1alpha1.CauseName(cause)))
	}
	if !slices.Equal(pages, want) {
		t.Errorf("the pages are %v, want %v", pages, want)
	}
	for i, cause := range causes(t) {
		page := document(t, want[i])
		if !strings.HasPrefix(page, "# "+cause+"\n\nWith this page ") {
			t.Errorf("%s does not begin with its name and its purpose", want[i])
		}
		sql, remedy := strings.Index(page, "\n```sql\n"), strings.Index(page, "\n## Remedy\n\n1. ")
		if sql < 0 || remedy < sql {
			t.Errorf("%s has no SQL before a section Remedy with steps", want[i])
		}
		if !strings.Contains(page, "(../../why-is-it-full.md#the-statements)") {
			t.Errorf("%s does not say how to run its statements", want[i])
		}
	}
}

// TestTheOverviewOfCausesLinksToEachPage checks the page that someone on call reads first. It has no statements, so that
// nobody corrects one of two copies.
func TestTheOverviewOfCausesLinksToEachPage(t *testing.T) {
	const overview = "docs/why-is-it-full.md"
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| [^|]+ \\| [^|]+ \\| \\[(\\w+)\\]\\(runbooks/causes/(\\w+)\\.md\\) \\|$")
	var named []string
	for _, m := range row.FindAllStringSubmatch(document(t, overview), -1) {
		named = append(named, m[1])
		if m[2] != m[1] || m[3] != m[1] {
			t.Errorf("the row of %s leads to %s, named %s", m[1], m[3], m[2])
		}
	}
	slices.Sort(named)
	if !slices.Equal(named, causes(t)) {
		t.Errorf("%s has rows of %v, want %v", overview, named, causes(t))
	}
	if strings.Contains(document(t, overview), "```sql") {
		t.Errorf("%s has statements; they belong on the page of a cause", overview)
	}
}

// The plot of the causes links each of its lines to the page of its cause.
func TestTheDashboardLinksToThePageOfACause(t *testing.T) {
	url := "https://github.com/mcsps/rds-autopilot/blob/main/" + insight.CausePage("${__field.labels.cause}")
	if !strings.Contains(document(t, "deploy/dashboards/rds-autopilot-databases.json"), `"`+url+`"`) {
		t.Errorf("the dashboard has no link %s", url)
	}
}
