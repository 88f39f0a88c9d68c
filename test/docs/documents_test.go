// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/test/world"
)

// block is the text of a fenced block, without the indentation of the list that it is in.
type block struct {
	kind, text string
}

func blocks(document string) []block {
	var found []block
	for _, m := range regexp.MustCompile("(?ms)^( *)```([a-z]*(?: run)?)\n(.*?)^ *```$").FindAllStringSubmatch(document, -1) {
		found = append(found, block{m[2], regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[3], "")})
	}
	return found
}

// pages are the documents that people follow, the first day first.
func pages(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"/README.md", "/docs/*.md", "/docs/runbooks/*.md", "/docs/runbooks/causes/*.md"} {
		found, err := filepath.Glob(root + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s, %v", pattern, err)
		}
		files = append(files, found...)
	}
	first := root + "/docs/first-day.md"
	return append([]string{first}, slices.DeleteFunc(files, func(f string) bool { return f == first })...)
}

// TestTheCommandsOfTheDocumentsWork types every block that is marked with "sh run", in the order of the pages.
func TestTheCommandsOfTheDocumentsWork(t *testing.T) {
	s := newShell(t)
	typed := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks(string(text)) {
			if b.kind != "sh run" {
				continue
			}
			typed++
			out := s.must(t, b.text)
			if !strings.Contains(b.text, " > ") && strings.Trim(out, " :\n") == "" { // it has nothing to say yet, such as the first decision
				err := world.Eventually(t.Context(), "it says something", func(ctx context.Context) (bool, error) {
					var err error
					out, err = s.sh(ctx, b.text)
					return strings.Trim(out, " :\n") != "", err
				})
				if err != nil {
					t.Errorf("%s: %s: %v", page, b.text, err)
				}
			}
			t.Logf("%s\n%s%s", filepath.Base(page), b.text, out)
		}
	}
	if typed < 20 {
		t.Errorf("only %d blocks", typed)
	}
}

func TestBlocksAreFound(t *testing.T) {
	const text = "a\n```sh run\none\ntwo\n```\n1. x\n\n   ```sh run\n   three\n   ```\n\n```yaml\na: b\n```\n```\nplain\n```\n"
	want := []block{{"sh run", "one\ntwo\n"}, {"sh run", "three\n"}, {"yaml", "a: b\n"}, {"", "plain\n"}}
	if got := blocks(text); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
