// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
)

const (
	people        = 50
	peopleReload  = 10 * time.Second
	peopleLook    = 6 * time.Minute // from when the disks are full, a minute longer than until the alarms
	peopleWatched = 60              // databases
)

// What people look at costs decisions nothing: a storm of alarms is decided as fast while fifty of them reload the overview, a
// database and its plan, each one another database.
func TestPeopleWhoReloadDelayNoDecision(t *testing.T) {
	level.Long(t)
	t.Parallel()
	decide := func(watched bool) (slowest time.Duration, calls int) {
		synctest.Test(t, func(t *testing.T) {
			var seen, plots atomic.Int32
			w := newStorm(t, peopleWatched, otcsim.Options{})
			var looking sync.WaitGroup
			if watched {
				looking.Go(func() { w.people(&seen, &plots) })
			}
			w.storm([]otcsim.Workload{{UsedGB: 93}}, 3*stormDecided)
			looking.Wait()
			for _, r := range w.sim.Requests() { // since the disks are full
				if r.Operation != "EnlargeVolume" { // the operator's
					calls++
				}
			}
			var decisions map[string]int
			decisions, slowest = w.firstDecisions()
			if decisions["GrowVolume AlarmInForce"] != peopleWatched {
				t.Errorf("watched %v: decided %v", watched, decisions)
			}
			if watched && (seen.Load() < people*10 || plots.Load() == 0) {
				t.Errorf("only %d pages were seen, %d of them with plots", seen.Load(), plots.Load())
			}
			t.Logf("watched %v: all are decided within %v; %d calls; %d pages seen, %d with plots", watched, slowest, calls, seen.Load(), plots.Load())
		})
		return slowest, calls
	}
	alone, needed := decide(false)
	watched, all := decide(true)
	// A tenth of the rate, and what may be asked at once by the first.
	if most := int(peopleLook.Seconds()*app.Defaults().CloudRate/10) + 10; all-needed > most {
		t.Errorf("people cost %d calls of %d, want at most %d: a tenth of the rate", all-needed, all, most)
	}
	if watched > alone+2*time.Second {
		t.Errorf("the slowest decision took %v while people looked, %v without them", watched, alone)
	}
}

// people look from when the disks are full: the alarms meet what they have asked for. They count the pages that were seen, and
// those with plots.
func (w *week) people(seen, plots *atomic.Int32) {
	for full := false; !full; time.Sleep(time.Second) {
		in, _ := w.sim.Instance(w.ids[w.databases[0].name])
		full = in.Workload.UsedGB > 90
	}
	var looking sync.WaitGroup
	defer looking.Wait()
	for i := range people {
		path := fmt.Sprintf("/databases/%s/%s", weekNamespace, w.databases[i].name)
		looking.Go(func() {
			for turn := range int(peopleLook / peopleReload) {
				time.Sleep(peopleReload)
				page := w.page.Load()
				if page == nil { // the process has ended
					return
				}
				answer := httptest.NewRecorder()
				(*page).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, []string{"/", path, path + "/plan"}[turn%3], nil))
				if answer.Code == http.StatusOK {
					seen.Add(1)
				}
				if strings.Contains(answer.Body.String(), `<svg class="plot"`) {
					plots.Add(1)
				}
			}
		})
	}
}
