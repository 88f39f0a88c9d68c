package deploy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A document that names a test as proof must name one that exists.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	named := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z][A-Za-z0-9]+\b`)
	defined := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z][A-Za-z0-9]+)\(`)
	exist := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			text, err := os.ReadFile(path)
			for _, m := range defined.FindAllStringSubmatch(string(text), -1) {
				exist[m[1]] = true
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"SECURITY.md", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "autopilot/webhook/testdata/attacks.md",
		"docs/operations.md", "docs/decisions.md", "docs/cloud-facts.md", "docs/command-line.md", "docs/development.md"} {
		text, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range named.FindAllString(string(text), -1) {
			if !exist[name] {
				t.Errorf("%s names %s, which is no test", file, name)
			}
		}
	}
}
