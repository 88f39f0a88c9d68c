// SPDX-License-Identifier: Apache-2.0

package release

import (
	"go/version"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

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
		language, own := goVersions(t, module)
		if version.Compare(language, toolchain) > 0 || own != toolchain {
			t.Errorf("%s needs %s with the toolchain %q, want the root's %s", module, language, own, toolchain)
		}
	}
}
