// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

const sdkModule = "github.com/opentelekomcloud/gophertelekomcloud"

// Build describes the build of the running binary.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	SDK      string `json:"sdk,omitempty"` // version of the cloud's SDK
}

// ThisBuild returns the build that runs. If commit is empty, it uses the commit that the Go tool recorded, if there is
// one.
func ThisBuild(version, commit string) Build {
	b := Build{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = cmp.Or(b.Commit, s.Value)
		}
	}
	for _, m := range info.Deps {
		if m.Path == sdkModule {
			b.SDK = m.Version
		}
	}
	return b
}

const repository = "https://github.com/mcsps/rds-autopilot"

var (
	// releaseTag matches the tag of a release or of a prerelease, such as v0.1.0 and v0.1.0-rc.1.
	releaseTag = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`)
	// describedCommit matches what git describe names without a tag at the commit: v0.1.0-3-g730bcf1 or 730bcf1.
	describedCommit = regexp.MustCompile(`^(?:v.*-\d+-g)?([0-9a-f]{7,40})$`)
)

// documentsURL returns the address of the documents of a version: at its tag, at its commit, or of today for a build of
// changed files.
func documentsURL(version string) string {
	ref := "main"
	if found := describedCommit.FindStringSubmatch(version); found != nil {
		ref = found[1]
	} else if releaseTag.MatchString(version) && !strings.HasSuffix(version, "-dirty") {
		ref = version
	}
	return repository + "/blob/" + ref + "/"
}
