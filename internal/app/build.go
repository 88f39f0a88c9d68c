// SPDX-License-Identifier: Apache-2.0

package app

import (
	"regexp"
	"strings"
)

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
