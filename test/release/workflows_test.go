// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
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
	On   map[string]any
	Jobs map[string]struct {
		Needs any
		Uses  string
		Steps []struct {
			ID, Name, Run string
			Env           map[string]string
			With          map[string]any
		}
	}
}

func readWorkflow(t *testing.T, path string) (w workflow) {
	t.Helper()
	text, err := os.ReadFile(root + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	// YAML 1.1 reads the key "on" as true.
	if err := yaml.Unmarshal([]byte(strings.Replace(string(text), "\non:\n", "\n\"on\":\n", 1)), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestReleasesWaitForAllChecks follows the job that releases to the script with all checks, and to the versions of Kubernetes.
func TestReleasesWaitForAllChecks(t *testing.T) {
	release := readWorkflow(t, ".github/workflows/release.yml")
	needs, _ := release.Jobs["release"].Needs.([]any)
	var steps []string
	for _, need := range needs {
		name, _ := need.(string)
		job := release.Jobs[name]
		for _, step := range job.Steps {
			steps = append(steps, step.Run)
		}
		if job.Uses == "" {
			continue
		}
		called := readWorkflow(t, strings.TrimPrefix(job.Uses, "./"))
		if _, callable := called.On["workflow_call"]; !callable {
			t.Errorf("%s cannot be called", job.Uses)
		}
		for _, job := range called.Jobs {
			for _, step := range job.Steps {
				steps = append(steps, step.Run)
			}
		}
	}
	for _, want := range []string{".ci/run", "make test-versions", "make vulncheck"} {
		if !slices.Contains(steps, want) {
			t.Errorf("the job release needs %v, and none of them runs %s", needs, want)
		}
	}
}

// TestTheReleasedFilesNameTheImageThatWasPushed wants the image first, and its digest in what is made after it.
func TestTheReleasedFilesNameTheImageThatWasPushed(t *testing.T) {
	pushed := false
	for _, step := range readWorkflow(t, ".github/workflows/release.yml").Jobs["release"].Steps {
		pushed = pushed || strings.Contains(step.Run, "make release-image")
		if strings.Contains(step.Run, "make release-files") {
			if !pushed || !strings.Contains(step.Run, `DIGEST="$DIGEST"`) {
				t.Errorf("the files are made without the digest of the image: %s", step.Run)
			}
			return
		}
	}
	t.Error("no step makes the files")
}

// TestReleasesAreSigned wants digests that the push has printed, a signature of each platform's manifest, and SBOMs that are
// attested. docs/verify-a-release.md has the commands that check all this, with the identity of the workflow.
func TestReleasesAreSigned(t *testing.T) {
	var script strings.Builder
	for _, step := range readWorkflow(t, ".github/workflows/release.yml").Jobs["release"].Steps {
		script.WriteString(step.Run + "\n")
	}
	for _, want := range []string{
		"cosign sign --yes --recursive \"$REGISTRY/rds-autopilot@$IMAGE_DIGEST\"", "cosign attest --yes --type spdxjson", "cosign sign-blob ",
	} {
		if !strings.Contains(script.String(), want) {
			t.Errorf("no step runs %s", want)
		}
	}
	if m := regexp.MustCompile(`crane digest [^@\n]*:[^@\n]*\n`).FindString(script.String()); m != "" {
		t.Errorf("%s asks for the digest of a tag, which may point to another image by now", m)
	}
	page, err := os.ReadFile(root + "/docs/verify-a-release.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"https://github.com/mcsps/rds-autopilot/.github/workflows/release.yml@refs/tags/v", "https://token.actions.githubusercontent.com",
		"cosign verify ", "cosign verify-attestation ", "cosign verify-blob ", "gh attestation verify ",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/verify-a-release.md lacks %s", want)
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
