// SPDX-License-Identifier: Apache-2.0

package release

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
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
		text := read(t, file)
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			if !pinned.MatchString(m[1]) && !strings.HasPrefix(m[1], "./.github/workflows/") { // of the same commit
				t.Errorf("%s uses %s, want the digest of a commit and # vX.Y.Z", filepath.Base(file), m[1])
			}
		}
		if !strings.Contains(string(text), "\npermissions:") {
			t.Errorf("%s does not limit its permissions", filepath.Base(file))
		}
	}
}

// workflow is the part of a workflow that the tests check.
type workflow struct {
	Jobs map[string]struct {
		Steps []struct {
			ID, Name, Run string
			Env           map[string]string
		}
	}
}

func readWorkflow(t *testing.T, path string) (w workflow) {
	t.Helper()
	if err := yaml.Unmarshal(read(t, root+"/"+path), &w); err != nil {
		t.Fatal(err)
	}
	return w
}
