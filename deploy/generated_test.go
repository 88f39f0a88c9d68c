// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/decide"
)

var update = flag.Bool("update", false, "write the generated documents anew")

// TestTheTableOfGuardsIsGenerated compares the table with the code, its only source; -update writes it.
func TestTheTableOfGuardsIsGenerated(t *testing.T) {
	const file, head = "docs/decisions.md", "| # | guard | for | reasons |\n|---|---|---|---|\n"
	rows := head
	for i, g := range decide.Table() {
		kind, names := "both", make([]string, 0, len(g.Reasons))
		if g.Kind != "" {
			kind = strings.ToLower(string(g.Kind))
		}
		for _, r := range g.Reasons {
			names = append(names, "`"+string(r)+"`")
		}
		rows += fmt.Sprintf("| %d | %s | %s | %s |\n", i+1, g.Name, kind, strings.Join(names, ", "))
	}
	page := document(t, file)
	table := regexp.MustCompile(regexp.QuoteMeta(head) + `(?:\|[^\n]*\n)*`)
	if found := table.FindAllString(page, -1); len(found) != 1 {
		t.Fatalf("%s has %d tables of guards", file, len(found))
	}
	checkGenerated(t, file, page, table.ReplaceAllLiteralString(page, rows))
}

// TestSectionsOfReasonsAreGenerated compares the first paragraph of each section of the runbook with the reason's meaning. Each
// reason has one section, which also says where to look and what to do.
func TestSectionsOfReasonsAreGenerated(t *testing.T) {
	const file = "docs/runbooks/reasons.md"
	page := document(t, file)
	generated := page
	for _, row := range autopilot.ReasonTable() {
		section := regexp.MustCompile(`\n## ` + string(row.Reason) + `\n\n[^\n]+(\n\n- Look: [^\n]+\n- Do: [^\n]+\n)`)
		if !section.MatchString(page) {
			t.Errorf("%s has no section %s with a meaning, where to look and what to do", file, row.Reason)
		}
		generated = section.ReplaceAllStringFunc(generated, func(old string) string {
			return "\n## " + string(row.Reason) + "\n\n" + row.Meaning + "." + section.FindStringSubmatch(old)[1]
		})
	}
	if got, want := strings.Count(page, "\n## "), len(autopilot.ReasonTable()); got != want {
		t.Errorf("%s has %d sections for %d reasons", file, got, want)
	}
	checkGenerated(t, file, page, generated)
}

func checkGenerated(t *testing.T, file, got, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile("../"+file, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is stale: run make generate (-generated +file):\n%s", file, diff)
	}
}
