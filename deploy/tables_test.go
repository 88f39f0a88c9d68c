// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/autopilot"
)

func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tables returns the tables below a heading of a document, each without its head, as rows of cells.
func tables(t *testing.T, path, heading string) [][][]string {
	t.Helper()
	_, text, found := strings.Cut(document(t, path), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no %q", path, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var all [][][]string
	inTable := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case strings.HasPrefix(line, "|---"):
			inTable, all = true, append(all, nil)
		case inTable:
			var cells []string
			for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
				cells = append(cells, strings.TrimSpace(cell))
			}
			all[len(all)-1] = append(all[len(all)-1], cells)
		}
	}
	return all
}

// quoted returns what stands in backticks.
func quoted(text string) (names []string) {
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

func compare(t *testing.T, what string, documented, coded any) {
	t.Helper()
	if diff := cmp.Diff(coded, documented); diff != "" {
		t.Errorf("%s: the document (+) is not what the code says (-):\n%s", what, diff)
	}
}

func TestOperationsListTheReasonsOfArmed(t *testing.T) {
	var documented []string
	for _, row := range tables(t, "docs/operations.md", "What you see")[1] {
		documented = append(documented, quoted(row[0])...)
	}
	coded := append(autopilot.NotArmedReasons(), autopilot.ArmedReason)
	slices.Sort(documented)
	slices.Sort(coded)
	compare(t, "reasons of Armed", documented, coded)
}

// The names that Cloud Eye has for the metrics, with their units, and the evidence of each.
func TestDocumentsListTheMetrics(t *testing.T) {
	documented, coded := map[string]string{}, map[string]string{}
	for _, row := range tables(t, "docs/cloud-facts.md", "Metrics")[0] {
		unit := strings.Fields(row[2])
		documented[quoted(row[0])[0]] = unit[len(unit)-1]
	}
	var evidence, labels []string
	for _, row := range autopilot.MetricTable() {
		coded[row.CloudEye] = row.Unit
		labels = append(labels, row.Label)
		if row.InGB() {
			coded[row.UsedGB], coded[row.TotalGB] = "GB", "GB"
		}
	}
	compare(t, "metrics of Cloud Eye", documented, coded)

	for _, row := range tables(t, "docs/decisions.md", "Evidence")[0] {
		evidence = append(evidence, strings.Split(row[0], ", ")...)
		for _, name := range quoted(row[1]) {
			if coded[name] == "" {
				t.Errorf("the evidence of %s: no metric is called %s", row[0], name)
			}
		}
	}
	compare(t, "metrics with evidence", evidence, labels)
}
