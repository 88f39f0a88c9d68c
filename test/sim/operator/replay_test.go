// SPDX-License-Identifier: Apache-2.0

package simoperator

import (
	"testing"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

func TestOperatorReplaysBackupSnapshotsAfterAFlavorChange(t *testing.T) {
	for name, test := range map[string]struct {
		during string // the flavor that the Rds gets while the instance is backed up
		busy   bool
		want   []string
	}{
		"a change after a backup":  {busy: true, want: []string{large, small, large, small, large}},
		"a change during a backup": {busy: true, during: large, want: []string{large, small, large, small, large}},
		"a change without one":     {want: []string{large}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "{flavorref: "+small+", volumesize: 100}", simcloud.Instance{Flavor: small, VolumeGB: 100})
			b.operator.Replay(4, time.Millisecond)
			if test.busy {
				b.setStatus("BACKING UP")
			}
			b.run()
			if test.busy {
				b.next(Postpone)
			}
			if test.during != "" {
				b.patch(`{"flavorref":"` + test.during + `"}`)
			}
			b.setStatus("ACTIVE")
			b.patch(`{"flavorref":"` + large + `"}`)
			for i, want := range test.want {
				if a := b.next(Resize); a.To != want {
					t.Errorf("resize %d is to %s, want %s", i+1, a.To, want)
				}
				if flavor := b.snapshot().Spec.FlavorRef; flavor != large {
					t.Errorf("after resize %d the Rds has %s", i+1, flavor)
				}
				b.pass(time.Hour)
			}
			b.patch(`{"volumesize":110}`)
			b.next(Enlarge) // it goes on as before
			if n := b.cloud.Count("rds", "ResizeFlavor"); n != len(test.want) {
				t.Errorf("%d resizes, want %d", n, len(test.want))
			}
		})
	}
}
