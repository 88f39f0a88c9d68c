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

	"github.com/mcsps/rds-autopilot/internal/otcsim"
)

const (
	people        = 50
	peopleLook    = 30 * time.Second // from the first alarm on, each second
	peopleWatched = 60               // databases
)

// What people look at costs decisions nothing: a storm of alarms is decided as fast while fifty of them reload the overview, a
// database and its plan, each one another database.
func TestPeopleWhoReloadDelayNoDecision(t *testing.T) {
	t.Parallel()
	decide := func(watched bool) (slowest time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			var seen, plots atomic.Int32
			begun := make(chan struct{})
			begin := sync.OnceFunc(func() { close(begun) })
			w := newStorm(t, peopleWatched, otcsim.Options{DeliveryFault: func(d otcsim.Delivery) otcsim.DeliveryFault {
				if d.Type == otcsim.TypeNotification {
					begin()
				}
				return otcsim.DeliveryFault{}
			}})
			var looking sync.WaitGroup
			for i := range people {
				looking.Go(func() {
					if <-begun; watched {
						w.look(w.databases[i].name, &seen, &plots)
					}
				})
			}
			w.storm([]otcsim.Workload{{UsedGB: 93}})
			looking.Wait()
			var decisions map[string]int
			decisions, slowest = w.firstDecisions()
			if decisions["GrowVolume AlarmInForce"] != peopleWatched {
				t.Errorf("watched %v: decided %v", watched, decisions)
			}
			if watched && (seen.Load() < people*10 || plots.Load() == 0) {
				t.Errorf("only %d pages were seen, %d of them with plots", seen.Load(), plots.Load())
			}
			t.Logf("watched %v: all are decided within %v; %d pages seen, %d with plots", watched, slowest, seen.Load(), plots.Load())
		})
		return slowest
	}
	alone, watched := decide(false), decide(true)
	if watched > alone+2*time.Second {
		t.Errorf("the slowest decision took %v while people looked, %v without them", watched, alone)
	}
}

// look is one person who reloads, and counts the pages that were seen, and those with plots.
func (w *week) look(name string, seen, plots *atomic.Int32) {
	for turn := range int(peopleLook / time.Second) {
		time.Sleep(time.Second)
		path := []string{"/", fmt.Sprintf("/databases/%s/%s", weekNamespace, name), fmt.Sprintf("/databases/%s/%s/plan", weekNamespace, name)}[turn%3]
		answer := httptest.NewRecorder()
		(*w.page.Load()).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code == http.StatusOK {
			seen.Add(1)
		}
		if strings.Contains(answer.Body.String(), `<svg class="plot"`) {
			plots.Add(1)
		}
	}
}
