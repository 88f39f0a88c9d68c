// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/autopilot/decide"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
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

// TestTheTablesOfTheLifeOfAChangeAreGenerated compares both tables with the code, their only source; -update writes them.
func TestTheTablesOfTheLifeOfAChangeAreGenerated(t *testing.T) {
	const file = "docs/decisions.md"
	const heads = "| state | what is known | pending | counts as a start | holds a place |\n|---|---|---|---|---|\n"
	const head = "| # | from | kind | with | what is seen | to |\n|---|---|---|---|---|---|\n"
	yes := map[bool]string{true: "yes", false: "no"}
	states, rows := heads, head
	for _, row := range []struct {
		State v1alpha1.ChangeState
		Known string
	}{
		{v1alpha1.StateRequested, "Stored, and about to be sent or sent. Nobody knows yet whether it has begun"},
		{v1alpha1.StateStarted, "The cloud has accepted it, or the flavor was seen changing"},
		{v1alpha1.StateRefused, "Every request was clearly refused. It waits for its next attempt, and blocks nothing else"},
		{v1alpha1.StateCompleted, "The cloud has at least this size, or exactly this flavor while the instance is `ACTIVE`"},
		{v1alpha1.StateFailed, "It had started, and is not there: its job failed, did nothing, or is not known any more"},
		{v1alpha1.StateLost, "It was requested, and there is no trace of it. Nobody knows whether it has begun"},
		{v1alpha1.StateReplaced, "Somebody else has requested something else: a smaller size, or a smaller flavor"},
		{v1alpha1.StateReverted, "The cloud left the flavor, although the spec requests it"},
		{v1alpha1.StateWithdrawn, "It was refused, and then not needed or not allowed any more"},
	} {
		now := time.Now()
		ch := v1alpha1.Change{Kind: v1alpha1.KindFlavor, By: v1alpha1.ByAutopilot, State: row.State, RequestTime: autopilot.Micro(now)}
		_, starts := change.StartOf(ch)
		states += fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", row.State, row.Known, yes[change.IsPending(ch)], yes[starts],
			yes[change.HoldsPlace([]v1alpha1.Change{ch}, now)])
	}
	for i, row := range change.Table() {
		from := make([]string, 0, len(row.From))
		for _, s := range row.From {
			from = append(from, cmp.Or(map[bool]string{true: "`" + string(s) + "`"}[s != ""], "–"))
		}
		rows += fmt.Sprintf("| %d | %s | %s | %s | %s | %s |\n", i+1, strings.Join(from, ", "), cmp.Or(strings.ToLower(string(row.Kind)), "both"),
			cmp.Or(row.With, "both"), row.Seen, cmp.Or(map[bool]string{true: "`" + string(row.To) + "`"}[row.To != ""], "what it was before this attempt"))
	}
	page := document(t, file)
	generated := page
	for _, table := range []struct{ head, rows string }{{heads, states}, {head, rows}} {
		generated = regexp.MustCompile(regexp.QuoteMeta(table.head)+`(?:\|[^\n]*\n)*`).ReplaceAllLiteralString(generated, table.rows)
	}
	checkGenerated(t, file, page, generated)
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
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s is stale: run make generate (-generated +file):\n%s", file, diff)
	}
}
