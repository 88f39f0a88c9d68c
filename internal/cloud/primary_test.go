// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/otc"
)

func TestWhoseDataAnInstanceShows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own, primary, standby float64
		another, known        bool
	}{
		"the primary's":            {own: 80, primary: 80, standby: 20, known: true},
		"about the primary's":      {own: 77, primary: 80, standby: 60, known: true},
		"the standby's":            {own: 20, primary: 80, standby: 20, another: true, known: true},
		"the average of both":      {own: 50, primary: 80, standby: 20, another: true, known: true},
		"a standby that works":     {own: 15, primary: 15, standby: 90, known: true},
		"equal loads tell nothing": {own: 21, primary: 22, standby: 20},
	} {
		at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
		points := func(v float64) []otc.Datapoint {
			return []otc.Datapoint{{Time: at.Add(-5 * time.Minute), Average: 1}, {Time: at, Average: v}}
		}
		another, known := isAnother(points(c.own), points(c.primary), points(c.standby))
		if known != c.known || known && another != c.another {
			t.Errorf("%s: another %v, known %v; want %v, %v", name, another, known, c.another, c.known)
		}
	}
	if _, known := isAnother(nil, []otc.Datapoint{{Time: time.Unix(300, 0), Average: 80}}, []otc.Datapoint{{Time: time.Unix(300, 0), Average: 1}}); known {
		t.Error("without data of the instance, nothing is known")
	}
}

// Loads that differ answer for a day and for all instances of the engine; loads that do not, for a minute.
func TestOneInstanceAnswersForItsEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, primary := 0, 20.0
		points := newBatcher(func(_ context.Context, series []otc.Series, _ int) (map[otc.Series][]otc.Datapoint, error) {
			calls++
			found := make(map[otc.Series][]otc.Datapoint)
			for _, s := range series {
				load := 20.0 // the instance's and the standby's
				if s.Value == "n2" {
					load = primary
				}
				found[s] = []otc.Datapoint{{Time: time.Unix(300, 0), Average: load}}
			}
			return found, nil
		}, time.Now)
		p := &primaries{points: points, now: time.Now, byEngine: make(map[string]comparison)}
		ask := func(want bool, wantCalls int, nodes ...string) {
			t.Helper()
			another, err := p.showsAnother(t.Context(), autopilot.Instance{ID: "i", Engine: "MySQL", NodeIDs: nodes, Primary: "n2"}, "rds_cluster_id", "rds_instance_id")
			if err != nil || another != want || calls != wantCalls {
				t.Errorf("another %v, %v after %d calls; want %v after %d", another, err, calls, want, wantCalls)
			}
		}
		ask(false, 0, "n2")
		ask(false, 1, "n1", "n2")
		ask(false, 1, "n1", "n2")
		time.Sleep(compareEvery)
		primary = 90
		ask(true, 2, "n1", "n2")
		time.Sleep(compareEvery)
		primary = 20
		ask(true, 2, "n1", "n2")
		time.Sleep(comparedFor)
		ask(true, 3, "n1", "n2")
	})
}
