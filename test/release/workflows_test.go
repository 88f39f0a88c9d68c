// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"go/version"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
		Needs any
		Uses  string
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

// TestReleasesWaitForAllChecks wants the script with all checks, all versions of Kubernetes and the vulnerability check in the jobs
// that the release needs.
func TestReleasesWaitForAllChecks(t *testing.T) {
	jobs := readWorkflow(t, ".github/workflows/release.yml").Jobs
	if needs := fmt.Sprint(jobs["release"].Needs); needs != "[ci versions]" {
		t.Errorf("the job release needs %s, want [ci versions]", needs)
	}
	steps := jobs["versions"].Steps
	for _, job := range readWorkflow(t, strings.TrimPrefix(jobs["ci"].Uses, "./")).Jobs {
		steps = append(steps, job.Steps...)
	}
	var commands []string
	for _, step := range steps {
		commands = append(commands, step.Run)
	}
	for _, want := range []string{".ci/run", "make test-versions", "make vulncheck"} {
		if !slices.Contains(commands, want) {
			t.Errorf("no job before the release runs %s: %q", want, commands)
		}
	}
}

// TestReleasesAreSigned wants a signature of each platform's manifest, of the chart and of the checksums, and SBOMs that are
// attested. The digests must be those that the push has printed, because a tag may point to another image by now.
func TestReleasesAreSigned(t *testing.T) {
	var script strings.Builder
	for _, step := range readWorkflow(t, ".github/workflows/release.yml").Jobs["release"].Steps {
		script.WriteString(step.Run + "\n")
	}
	for _, want := range []string{
		`cosign sign --yes --recursive "$REGISTRY/rds-autopilot@$IMAGE_DIGEST"`, `cosign sign --yes "$REGISTRY/charts/rds-autopilot@$CHART_DIGEST"`,
		"cosign attest --yes --type spdxjson", "cosign sign-blob ",
	} {
		if !strings.Contains(script.String(), want) {
			t.Errorf("no step runs %s", want)
		}
	}
	if m := regexp.MustCompile(`crane digest [^@\n]*:[^@\n]*\n`).FindString(script.String()); m != "" {
		t.Errorf("%s asks for the digest of a tag", m)
	}
}

// goVersions returns the versions in the lines go and toolchain of a go.mod, as in "go1.26.0". A missing one is empty.
func goVersions(t *testing.T, file string) (language, toolchain string) {
	t.Helper()
	text := string(read(t, file))
	if m := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(text); m != nil {
		language = "go" + m[1]
	}
	if m := regexp.MustCompile(`(?m)^toolchain (\S+)$`).FindStringSubmatch(text); m != nil {
		toolchain = m[1]
	}
	return language, toolchain
}

// TestToolModulesNeedNoNewerToolchainThanTheRoot finds a module that CI could not build. CI installs the toolchain of the root's
// go.mod, and setup-go forbids Go to download another one. A different toolchain would also build a different standard library.
func TestToolModulesNeedNoNewerToolchainThanTheRoot(t *testing.T) {
	_, toolchain := goVersions(t, root+"/go.mod")
	if !version.IsValid(toolchain) {
		t.Fatalf("the root's go.mod has the toolchain %q", toolchain)
	}
	servers, err1 := filepath.Glob(root + "/test/apiserver/*/go.mod")
	tools, err2 := filepath.Glob(root + "/test/tools/*/go.mod")
	modules := slices.Concat(servers, tools)
	if err1 != nil || err2 != nil || len(modules) < 10 {
		t.Fatal(modules, err1, err2)
	}
	for _, module := range modules {
		language, moduleToolchain := goVersions(t, module)
		if version.Compare(language, toolchain) > 0 || moduleToolchain != toolchain {
			t.Errorf("%s needs %s with the toolchain %q, want the root's %s", module, language, moduleToolchain, toolchain)
		}
	}
}

// TestTheChartRequiresTheOldestVersionThatIsTested compares kubeVersion with the modules of the API servers.
func TestTheChartRequiresTheOldestVersionThatIsTested(t *testing.T) {
	var meta struct{ KubeVersion string }
	if err := yaml.Unmarshal(read(t, chart+"/Chart.yaml"), &meta); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Glob(root + "/test/apiserver/servers*/go.mod")
	if err != nil || len(modules) < 3 {
		t.Fatalf("%q, %v: want three versions at least", modules, err)
	}
	oldest := 1000
	for _, module := range modules {
		m := regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v1\.(\d+)\.`).FindSubmatch(read(t, module))
		if m == nil {
			t.Fatalf("%s pins no version of Kubernetes", module)
		}
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		oldest = min(oldest, n)
	}
	if want := ">=1." + strconv.Itoa(oldest) + ".0-0"; meta.KubeVersion != want {
		t.Errorf("kubeVersion is %q, want %q, the oldest version of make test-versions", meta.KubeVersion, want)
	}
}
