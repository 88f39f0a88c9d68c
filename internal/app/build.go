// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"runtime"
	"runtime/debug"
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
