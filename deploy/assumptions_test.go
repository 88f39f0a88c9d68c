// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/internal/doctor"
)

const facts = "docs/cloud-facts.md"

func TestCloudFactsListTheAssumptions(t *testing.T) {
	var documented, coded []string
	for _, row := range tables(t, facts, "Assumptions")[0] {
		documented = append(documented, strings.Join(row, " | "))
	}
	for _, a := range doctor.Assumptions() {
		coded = append(coded, strings.Join([]string{"`" + a.ID + "`", a.Assumed, a.Why, a.IfWrong}, " | "))
	}
	compare(t, "assumptions", documented, coded)
}

// Each fact that is not certain has a line of doctor, or the page says that nothing relies on it; and each assumption that nobody
// documents is a fact of the section that it names.
func TestEachUncertainFactHasALineOfDoctor(t *testing.T) {
	named := map[string]string{} // the sections that name an assumption
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(document(t, facts), -1) {
		heading := m[1]
		if heading == "Assumptions" {
			continue
		}
		_, text, _ := strings.Cut(document(t, facts), "\n## "+heading+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
		for _, id := range quoted(text) {
			named[id] += " " + strings.ReplaceAll(strings.ToLower(heading), " ", "-")
		}
		for _, table := range tables(t, facts, heading) {
			for _, row := range table {
				for _, cell := range row {
					uncertain := regexp.MustCompile(`^(inferred|unknown|documented \(HWC\)|.*(in conflict|in doubt|inferred))\b`).MatchString(cell)
					met := regexp.MustCompile(`nothing relies on|will do|final-answers`).MatchString(cell)
					if uncertain && !met && !slices.ContainsFunc(quoted(cell), isAssumption) && len(cell) < 150 {
						t.Errorf("%s: %q: neither doctor has a line for it, nor does the page say that nothing relies on it", heading, row)
					}
				}
			}
		}
	}
	for _, a := range doctor.Assumptions() {
		section, _, _ := strings.Cut(a.Why[strings.LastIndex(a.Why, "(#")+2:], ")")
		certain := strings.HasPrefix(a.Why, "documented:") || strings.HasPrefix(a.Why, "observed:") || strings.Contains(a.Why, "samples") || strings.Contains(a.Why, "captures")
		if !certain && !strings.Contains(named[a.ID], section) && !strings.Contains(a.Why, "masked") {
			t.Errorf("%s is %s, and no fact of that section names it", a.ID, a.Why)
		}
	}
}

func isAssumption(id string) bool {
	return slices.ContainsFunc(doctor.Assumptions(), func(a doctor.Assumption) bool { return a.ID == id })
}

// What the receiver refuses for good is in the table of attacks; the page says of each how an honest sender could draw it.
func TestEachFinalAnswerIsExplained(t *testing.T) {
	var explained, given []string
	for _, row := range tables(t, facts, "Final answers")[0] {
		if len(quoted(row[0])) > 0 {
			explained = append(explained, strings.ReplaceAll(row[0], "`", ""))
		}
	}
	attacks, err := os.ReadFile("../autopilot/webhook/testdata/attacks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\| (4\d\d) \| ([a-z_]+) \|`).FindAllStringSubmatch(string(attacks), -1) {
		given = append(given, m[1]+" "+m[2])
	}
	slices.Sort(given)
	slices.Sort(explained)
	compare(t, "final answers", explained, slices.Compact(given))
}

func TestEachRepairHasAnEndThatATestShows(t *testing.T) {
	written := ""
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != "." {
			return fs.SkipDir
		}
		if err == nil && strings.HasSuffix(path, "_test.go") {
			text, readErr := os.ReadFile("../" + path)
			written, err = written+string(text), readErr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := tables(t, facts, "Repairs")[0]
	for _, row := range rows {
		shown := quoted(row[3])
		for _, name := range shown {
			if _, test, _ := strings.Cut(name, ": "); !strings.Contains(written, "func "+test+"(") {
				t.Errorf("%s: there is no %s", row[0], name)
			}
		}
		if len(shown) == 0 {
			t.Errorf("%s: shown by nothing", row[0])
		}
	}
	if len(rows) < 5 {
		t.Errorf("%d repairs", len(rows))
	}
}

func TestDoctorsPageListsTheChecks(t *testing.T) {
	var documented, coded []string
	for _, row := range tables(t, "docs/doctor.md", "Checks")[0] {
		documented = append(documented, strings.Join(row, " | "))
	}
	for _, c := range doctor.Checks() {
		coded = append(coded, "`"+c.ID+"` | "+c.Asks)
	}
	compare(t, "checks", documented, coded)
}
