// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

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
	if err != nil {
		t.Fatal(err)
	}
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

// Paths in documents are relative to the root. docs/development.md is checked for every text in the form of a path. The others
// are checked for paths that begin with a folder of the repository, because URLs and API groups look like paths too.
func TestDocumentsNamePathsThatExist(t *testing.T) {
	form := regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+$|^[\w.-]*\.(go|md|ya?ml|json)$`)
	for _, file := range documents(t) {
		for _, name := range quoted(document(t, file)) {
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

func TestDocumentsLinkToWhatExists(t *testing.T) {
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

// Every folder with code is a row of the layout, or lies below one.
func TestLayoutListsTheFolders(t *testing.T) {
	listed := map[string]bool{}
	for _, row := range tables(t, "docs/development.md", "Layout")[0] {
		folder := quoted(row[0])[0]
		listed[folder] = true
		if info, err := os.Stat(filepath.Join("..", folder)); err != nil || !info.IsDir() {
			t.Errorf("%s is no folder", folder)
		}
	}
	missing := map[string]bool{}
	eachFile(t, func(name string) {
		folder := path.Dir(name)
		if !strings.HasSuffix(name, ".go") || listed[folder] {
			return
		}
		// A folder below autopilot or k8s is a package of its own and has a row; one below test/apiserver does not need it.
		for up := path.Dir(folder); up != "."; up = path.Dir(up) {
			if listed[up] && strings.Contains(up, "/") {
				return
			}
		}
		missing[folder] = true
	})
	for folder := range missing {
		t.Errorf("the layout lacks %s", folder)
	}
}

func TestAlarmsWayNamesFunctionsThatExist(t *testing.T) {
	hop := 0
	for _, row := range tables(t, "docs/development.md", "One alarm's way")[0] {
		if row[0] != "" {
			if hop++; row[0] != strconv.Itoa(hop) {
				t.Errorf("hop %s comes as number %d", row[0], hop)
			}
		}
		file := quoted(row[2])[0]
		code := document(t, file)
		for _, name := range quoted(row[3]) {
			head := `(?m)^func ` + name + `\(`
			if typ, method, ok := strings.Cut(name, "."); ok {
				head = `(?m)^func \(\w+ \*?` + typ + `\) ` + method + `\(`
			}
			if !regexp.MustCompile(head).MatchString(code) {
				t.Errorf("%s has no function %s", file, name)
			}
		}
	}
	if hop == 0 {
		t.Error("no hops")
	}
}

// A release needs a section in CHANGELOG.md. From then on, no page may say that nothing is published.
func TestDocumentsSayWhatIsPublished(t *testing.T) {
	released := regexp.MustCompile(`(?m)^## v\d`).MatchString(document(t, "CHANGELOG.md"))
	for file, text := range map[string]string{
		"README.md":                "**Nothing is published yet.**",
		"docs/operations.md":       "**Nothing is published yet**",
		"docs/first-day.md":        "No image is published yet.",
		"deploy/chart/Chart.yaml":  "Nothing is published yet.",
		"deploy/chart/values.yaml": "Nothing is published yet:",
	} {
		if says := strings.Contains(document(t, file), text); says == released {
			t.Errorf("CHANGELOG.md has a released version: %v, and %s says %q: %v", released, file, text, says)
		}
	}
}

// A reader decides by the first sentence of a page whether it is the right one.
func TestEachPageBeginsWithWhatItIsFor(t *testing.T) {
	for _, file := range documents(t) {
		if !strings.HasPrefix(file, "docs/") {
			continue
		}
		_, text, _ := strings.Cut(document(t, file), "\n\n")
		if !strings.HasPrefix(text, "With this page you ") {
			t.Errorf("%s begins with %.60q, want what the reader can do with it", file, text)
		}
	}
}
