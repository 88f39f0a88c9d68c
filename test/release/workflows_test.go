// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestActionlintPasses(t *testing.T) {
	run(t, command(t, nil, tool(t, "actionlint")))
}

// TestActionsArePinned wants each action by the digest of a commit, with its version beside it for people and for Dependabot.
func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob(root + "/.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	uses := regexp.MustCompile(`(?m)^\s*-?\s*uses: (.*)$`)
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s uses %s, want the digest of a commit and # vX.Y.Z", filepath.Base(file), m[1])
			}
		}
		if !strings.Contains(string(text), "\npermissions:") {
			t.Errorf("%s does not limit its permissions", filepath.Base(file))
		}
	}
}

// TestWorkflowsCallTargetsThatExist finds a target that was renamed.
func TestWorkflowsCallTargetsThatExist(t *testing.T) {
	makefile, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(root + "/.github/workflows/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)\bmake ([a-z -]+)`).FindAllStringSubmatch(string(text), -1) {
			for target := range strings.FieldsSeq(m[1]) {
				if !strings.Contains(string(makefile), "\n"+target+":") {
					t.Errorf("%s makes %s, which is no target", filepath.Base(file), target)
				}
			}
		}
	}
}
