// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/internal/doctor"
)

// TestUncertainFactNamesAnAssumptionOfDoctor reads the marks of all facts. An uncertain fact names an assumption, or says that
// nothing relies on it.
func TestUncertainFactNamesAnAssumptionOfDoctor(t *testing.T) {
	uncertain := regexp.MustCompile(`^(inferred|unknown|documented \(HWC\)|.*(in conflict|in doubt|inferred))\b`)
	tolerated := regexp.MustCompile(`nothing relies on|will do|final-answers`)
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(document(t, facts), -1) {
		if m[1] == "Assumptions" {
			continue
		}
		for _, row := range slices.Concat(tables(t, facts, m[1])...) {
			for _, cell := range row {
				isMark := uncertain.MatchString(cell) && len(cell) < 150
				if isMark && !tolerated.MatchString(cell) && !slices.ContainsFunc(quoted(cell), isAssumption) {
					t.Errorf("%s: %q names no assumption, and does not say that nothing relies on it", m[1], row)
				}
			}
		}
	}
}

func isAssumption(id string) bool {
	return slices.ContainsFunc(doctor.Assumptions(), func(a doctor.Assumption) bool { return a.ID == id })
}

// The table of attacks has each final refusal of the receiver. The page says how a genuine sender could cause it.
func TestFinalAnswersListEachRefusalOfTheReceiver(t *testing.T) {
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
