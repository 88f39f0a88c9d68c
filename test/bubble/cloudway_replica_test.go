// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// enlargements are the answers of the cloud to the requests for a larger volume, in their order. A refusal that is
// repeated counts once: while the database is nearly read-only, the primary asks at each check.
func (w *cloudWay) enlargements() (all []string) {
	for _, r := range w.sim.Requests() {
		if r.Operation != "EnlargeVolume" {
			continue
		}
		for name, id := range w.ids {
			answer := fmt.Sprintf("%s %d", name, r.Status)
			if strings.Contains(r.URI, id) && (r.Status == 202 || !slices.Contains(all, answer)) {
				all = append(all, answer)
			}
		}
	}
	return all
}

// In each reading of the documents, a primary and its read replica both grow, once each. The service is restarted between
// both requests, and does neither repeat nor skip one.
func TestApplyCloudGrowsAPrimaryAndItsReplicaInEachReadingOfTheDocuments(t *testing.T) {
	for name, tc := range map[string]struct {
		first  simcloud.GrowFirst
		usedGB float64
		want   []string
	}{
		"any order":                       {"", 91, []string{"reader 202", "db 202"}},
		"the replica first":               {simcloud.GrowReplicaFirst, 91, []string{"reader 202", "db 202"}},
		"the primary first":               {simcloud.GrowPrimaryFirst, 91, []string{"reader 400", "db 202", "reader 202"}},
		"any order, nearly read-only":     {"", 94, []string{"db 202", "reader 202"}},
		"replica first, nearly read-only": {simcloud.GrowReplicaFirst, 94, []string{"db 400", "reader 202", "db 202"}},
		"primary first, nearly read-only": {simcloud.GrowPrimaryFirst, 94, []string{"db 202", "reader 202"}},
	} {
		for way, withRds := range bothWays {
			t.Run(name+", "+way, func(t *testing.T) {
				level.InBubble(t, func(t *testing.T) {
					w := newCloudWay(t, withRds, simcloud.Settings{GrowFirst: tc.first})
					w.add("db", instance("rds.pg.n1.large.4", 100, 10), "")
					reader := instance("rds.pg.n1.large.4.rr", 100, 10)
					reader.Name, reader.ReplicaOf = "reader", w.ids["db"]
					reader, err := w.sim.AddInstance(reader)
					w.must(err)
					w.ids["reader"] = reader.ID
					s := w.start(allowed())
					w.until("it is armed", func() bool { return w.armed(1) })
					w.bear("db", simcloud.Workload{UsedGB: tc.usedGB})
					w.until("the first grows", func() bool { return w.begun("EnlargeVolume") == 1 })
					s.stop()
					s = w.start(allowed())
					w.until("both have grown", func() bool { return w.in("db").VolumeGB == 110 && w.in("reader").VolumeGB == 110 })
					time.Sleep(2 * time.Hour)
					s.stop()
					w.hasDone("db", "Autopilot 100→110 Completed")
					if got := w.enlargements(); !slices.Equal(got, tc.want) {
						t.Errorf("the cloud answered %v, want %v", got, tc.want)
					}
					if n := len(w.events("default", "db", "ReplicaSmaller")); n > 0 {
						t.Errorf("%d events of a smaller replica", n)
					}
				})
			})
		}
	}
}
