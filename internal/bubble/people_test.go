package bubble

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
)

const (
	people      = 50
	reloadEvery = time.Second
)

// What people look at costs decisions nothing: a storm of alarms is decided as fast while fifty of them reload the overview, a
// database and its plan, each one another database.
func TestPeopleWhoReloadDelayNoDecision(t *testing.T) {
	level.Long(t)
	t.Parallel()
	decide := func(watched bool) (slowest time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			w := newStorm(t, otcsim.Options{})
			var seen atomic.Int32
			if watched {
				stop := w.reload(&seen)
				defer stop()
			}
			w.storm([]otcsim.Workload{{UsedGB: 93}})
			var decisions map[string]int
			decisions, slowest = w.firstDecisions()
			if decisions["GrowVolume AlarmInForce"] != stormDatabases {
				t.Errorf("watched %v: decided %v", watched, decisions)
			}
			if watched && seen.Load() < people*60 {
				t.Errorf("only %d pages were seen", seen.Load())
			}
			t.Logf("watched %v: all are decided within %v, %d pages seen", watched, slowest, seen.Load())
		})
		return slowest
	}
	alone, watched := decide(false), decide(true)
	if watched > alone+2*time.Second || watched > stormDecided {
		t.Errorf("the slowest decision took %v while people looked, %v without them", watched, alone)
	}
}

// reload lets people look from now on, and counts the pages they see.
func (w *week) reload(seen *atomic.Int32) (stop func()) {
	done := make(chan struct{})
	var looking sync.WaitGroup
	for i := range people {
		name := w.databases[i*len(w.databases)/people].name
		looking.Go(func() {
			tick := time.NewTicker(reloadEvery)
			defer tick.Stop()
			for turn := 0; ; turn++ {
				select {
				case <-done:
					return
				case <-tick.C:
				}
				page := w.page.Load()
				if page == nil {
					continue
				}
				path := []string{"/", fmt.Sprintf("/databases/%s/%s", weekNamespace, name), fmt.Sprintf("/databases/%s/%s/plan", weekNamespace, name)}[turn%3]
				answer := httptest.NewRecorder()
				(*page).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
				if answer.Code == http.StatusOK {
					seen.Add(1)
				}
			}
		})
	}
	return func() { close(done); looking.Wait() }
}
