// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
)

// Turning autopilot on for a database that is full already is the most urgent case there is.
func TestADatabaseThatIsFullAlreadyIsArmedAndGrown(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newFew(t, otcsim.Options{}, weekDatabase{name: "db", start: instance(twoVCPUs, 100, 98)})
		if in, _ := w.sim.Instance(w.ids["db"]); in.Status != otcsim.StatusStorageFull {
			t.Fatalf("the instance is in %s", in.Status)
		}
		stop := w.lead()
		begin := time.Now()
		time.Sleep(30 * time.Minute)
		w.allArmed("half an hour after autopilot was turned on for a full database")
		p := w.patches("db")
		if len(p) != 1 || p[0].volumeGB != 120 || p[0].at.Sub(begin) > 15*time.Minute {
			t.Errorf("the patches are %+v, want one to 120 GB within 15 minutes", p)
		}
		if at := w.warned("db", "StorageFull"); at.IsZero() || at.Sub(begin) > 20*time.Minute {
			t.Errorf("nobody is warned of StorageFull (%v)", at)
		}
		time.Sleep(3 * time.Hour)
		w.bear("db", otcsim.Workload{UsedGB: 80}) // a person makes room, so that the operator can do its part
		time.Sleep(30 * time.Minute)
		stop()
		if in, _ := w.sim.Instance(w.ids["db"]); in.VolumeGB != 120 {
			t.Errorf("the cloud has %d GB, want 120", in.VolumeGB)
		}
		if p := w.patches("db"); len(p) != 1 {
			t.Errorf("the patches are %+v, want one", p)
		}
		if !slices.ContainsFunc(w.book.page("db").events, func(e weekEvent) bool { return e.Reason == "Completed" }) {
			t.Error("nobody is told that it came")
		}
	})
}
