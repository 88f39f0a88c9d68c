// SPDX-License-Identifier: Apache-2.0

package app

import "testing"

func TestDocumentsURLIsThatOfTheVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v0.1.0": "v0.1.0", "v1.2.3-rc.1": "v1.2.3-rc.1", "v0.1.0-3-g730bcf1": "730bcf1", "730bcf1": "730bcf1",
		"v0.1.0-dirty": "main", "v0.1.0-3-g730bcf1-dirty": "main", "730bcf1-dirty": "main", "dev": "main", "": "main", "v1/../..": "main",
	} {
		if got := documentsURL(version); got != "https://github.com/mcsps/rds-autopilot/blob/"+want+"/" {
			t.Errorf("%q: %s, want %s", version, got, want)
		}
	}
}
