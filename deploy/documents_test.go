// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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

// quoted returns the texts in backticks.
func quoted(text string) (names []string) {
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
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
