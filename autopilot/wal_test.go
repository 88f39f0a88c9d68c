// SPDX-License-Identifier: Apache-2.0

package autopilot_test

import (
	"testing"

	"github.com/mcsps/rds-autopilot/autopilot"
)

func TestWALIsNamedFromAFifthOfTheUsedSpaceOn(t *testing.T) {
	for name, tc := range map[string]struct {
		wal    autopilot.WAL
		usedGB float64
		want   string
	}{
		"below a fifth": {autopilot.WAL{GB: 17.9, InactiveSlots: 1}, 90, ""},
		"a fifth":       {autopilot.WAL{GB: 18}, 90, "18 of the 90 GB in use are WAL: growing does not fix this"},
		"with a slot": {autopilot.WAL{GB: 41, InactiveSlots: 1}, 92,
			"41 of the 92 GB in use are WAL, and 1 inactive logical replication slot keeps WAL: growing does not fix this"},
		"with two slots": {autopilot.WAL{GB: 41, InactiveSlots: 2}, 92,
			"41 of the 92 GB in use are WAL, and 2 inactive logical replication slots keep WAL: growing does not fix this"},
		"no used space":            {autopilot.WAL{GB: 41}, 0, ""},
		"more than the used space": {autopilot.WAL{GB: 93}, 92, ""},
	} {
		if got := tc.wal.Describe(tc.usedGB); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
