// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"
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

// pages are the documents that people follow.
func pages(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{"/README.md", "/docs/*.md", "/docs/runbooks/*.md", "/docs/runbooks/causes/*.md"} {
		found, err := filepath.Glob(root + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s, %v", pattern, err)
		}
		files = append(files, found...)
	}
	return slices.DeleteFunc(files, func(f string) bool { return f == root+"/docs/first-day.md" })
}

func TestBlocksAreFound(t *testing.T) {
	const text = "a\n```sh run\none\ntwo\n```\n1. x\n\n   ```sh run\n   three\n   ```\n\n```yaml\na: b\n```\n```\nplain\n```\n"
	want := []block{{"sh run", "one\ntwo\n"}, {"sh run", "three\n"}, {"yaml", "a: b\n"}, {"", "plain\n"}}
	if got := blocks(text); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
