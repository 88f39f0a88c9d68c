// SPDX-License-Identifier: Apache-2.0

package release

import (
	"go/version"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goVersions returns the versions in the lines go and toolchain of a go.mod, as in "go1.26.0". A missing one is empty.
func goVersions(text string) (least, toolchain string) {
	if m := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(text); m != nil {
		least = "go" + m[1]
	}
	if m := regexp.MustCompile(`(?m)^toolchain (\S+)$`).FindStringSubmatch(text); m != nil {
		toolchain = m[1]
	}
	return least, toolchain
}

// TestNoToolModuleIsNewerThanTheRoot finds a module that CI could not build. CI installs the toolchain of the root's go.mod, and
// setup-go forbids Go to download another one. A different toolchain would also build a different standard library.
func TestNoToolModuleIsNewerThanTheRoot(t *testing.T) {
	text, err := os.ReadFile(root + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, toolchain := goVersions(string(text))
	if !version.IsValid(toolchain) {
		t.Fatalf("the root's go.mod has the toolchain %q", toolchain)
	}
	modules := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() != ".." && strings.HasPrefix(d.Name(), ".") && path != root {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if d.Name() != "go.mod" {
			return nil
		}
		modules++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		least, own := goVersions(string(text))
		if version.Compare(least, toolchain) > 0 {
			t.Errorf("%s needs %s, and the root's toolchain is %s", path, least, toolchain)
		}
		if own != toolchain {
			t.Errorf("%s has the toolchain %q, want the root's %s", path, own, toolchain)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if modules < 10 {
		t.Errorf("%d modules", modules)
	}
}
