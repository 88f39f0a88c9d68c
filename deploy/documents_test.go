// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/autopilot/decide"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// document returns the text of a file. Its path is relative to the root of the repository.
func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", path))
	must(t, err)
	return string(text)
}

// documents returns all pages in the root and below docs, and the list of attacks.
func documents(t *testing.T) []string {
	t.Helper()
	pages := []string{"autopilot/webhook/testdata/attacks.md"}
	eachFile(t, func(name string) {
		if strings.HasSuffix(name, ".md") && (!strings.Contains(name, "/") || strings.HasPrefix(name, "docs/")) {
			pages = append(pages, name)
		}
	})
	if len(pages) < 10 {
		t.Fatalf("only %v", pages)
	}
	return pages
}

// eachFile calls f with the path of every file of the repository, relative to its root.
func eachFile(t *testing.T, f func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(".."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != ".":
			return fs.SkipDir
		case !d.IsDir():
			f(name)
		}
		return nil
	})
	must(t, err)
}

// A test that a document names as proof must exist.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	named := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z][A-Za-z0-9]+\b`)
	defined := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z][A-Za-z0-9]+)\(`)
	exist := map[string]bool{}
	eachFile(t, func(name string) {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range defined.FindAllStringSubmatch(document(t, name), -1) {
				exist[m[1]] = true
			}
		}
	})
	for _, file := range documents(t) {
		for _, name := range named.FindAllString(document(t, file), -1) {
			if !exist[name] {
				t.Errorf("%s names %s, which is no test", file, name)
			}
		}
	}
}

// Paths in documents are relative to the root. In docs/development.md, every text in the form of a path is one. Elsewhere, a
// path begins with a folder of the repository, because URLs and API groups look like paths too.
func TestDocumentsNamePathsThatExist(t *testing.T) {
	quoted := regexp.MustCompile("`([^`\n]+)`")
	form := regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+$|^[\w.-]*\.(go|md|ya?ml|json)$`)
	for _, file := range documents(t) {
		for _, text := range quoted.FindAllStringSubmatch(document(t, file), -1) {
			name := text[1]
			first, rest, _ := strings.Cut(name, "/")
			_, err := os.Stat(filepath.Join("..", first))
			if first == ".cache" { // comes with the first run
				continue
			}
			if !form.MatchString(name) || file != "docs/development.md" && (err != nil || rest == "") {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", name)); err != nil {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
	}
}

func TestDocumentsLinkToFilesAndHeadingsThatExist(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings := regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchors := regexp.MustCompile("[^a-z0-9 _-]")
	for _, file := range documents(t) {
		for _, link := range links.FindAllStringSubmatch(document(t, file), -1) {
			target, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			if target = path.Join(path.Dir(file), target); strings.HasPrefix(link[1], "#") {
				target = file
			}
			if _, err := os.Stat(filepath.Join("..", target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, link[1])
				continue
			}
			if anchor == "" {
				continue
			}
			found := false
			for _, h := range headings.FindAllStringSubmatch(document(t, target), -1) {
				slug := strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")
				found = found || slug == anchor
			}
			if !found {
				t.Errorf("%s links to %s, which has no such heading", file, link[1])
			}
		}
	}
}

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

const referenceHead = `# The resource RdsAutopilot

With this page you look up each field of the resource, with its type, limits and default.

` + "`kubectl explain rdsautopilot.spec`" + ` shows the same. API version ` + "`autopilot.otc.mcsps.de/v1alpha1`" + `, short name
` + "`rap`" + `. ` + "`make generate`" + ` writes this page.

The spec is yours, the status is the service's. [Decisions](decisions.md) explains what the fields do.
`

// TestReferenceIsGenerated compares docs/reference.md with the schema; -update writes it.
func TestReferenceIsGenerated(t *testing.T) {
	schema := at(t, read(t, autopilotCRD)[0], "spec", "versions", 0, "schema", "openAPIV3Schema").(map[string]any)
	properties := schema["properties"].(map[string]any)
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
