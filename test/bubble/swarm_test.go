// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/test/level"
)

// TestSwarm runs whole simulated months of the service and judges them by the contract. SWARM_SEED runs one seed, SWARM_SEEDS
// a range such as 100-199.
func TestSwarm(t *testing.T) {
	t.Parallel()
	from, to, limit := uint64(1), uint64(3), time.Duration(0)
	if level.IsLong(t) {
		from, to, limit = 4, 1<<40, 5*time.Minute
	}
	if level.IsSoak(t) {
		from, limit = uint64(time.Now().UnixNano()), 0
	}
	if text := os.Getenv("SWARM_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal("SWARM_SEED:", err)
		}
		from, to, limit = n, n, 0
	}
	if text := os.Getenv("SWARM_SEEDS"); text != "" {
		if _, err := fmt.Sscanf(text, "%d-%d", &from, &to); err != nil {
			t.Fatal("SWARM_SEEDS:", err)
		}
		limit = 0
	}
	began := time.Now()
	for from <= to && (limit == 0 || time.Since(began) < limit) && !(limit > 0 && t.Failed()) {
		t.Run("seeds", func(t *testing.T) {
			for range runtime.GOMAXPROCS(0) {
				if seed := from; seed <= to {
					t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { live(t, drawPlan(seed)) })
					})
				}
				from++
			}
		})
	}
}

// live lets a plan come true.
func live(t *testing.T, p plan) {
	w := newSwarm(t, p)
	events := p.events
	for end := time.Duration(p.days) * day; w.at() < end; time.Sleep(tick) {
		w.now.Store(int64(w.at()))
		for len(events) > 0 && events[0].at <= w.at() {
			w.happen(events[0])
			events = events[1:]
		}
		for _, o := range p.outages {
			if w.at() >= o.from && w.at() < o.to {
				w.disturb(5 * time.Minute)
			}
		}
		for _, d := range w.databases {
			d.pass()
		}
		if w.at()%operatorPeriod < tick {
			w.operator.work(t.Context())
		}
		for _, d := range w.databases {
			d.judgeReadOnly()
		}
		if w.at()%(30*time.Minute) < tick {
			w.settled()
		}
		if w.at()%(14*time.Minute) < tick {
			w.restart()
		}
	}
	for _, r := range w.replicas {
		r.stop()
	}
	w.report()
}

// report fails with the timeline around the first violation.
func (w *swarm) report() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if os.Getenv("SWARM_TIMELINE") != "" {
		w.t.Log("\n" + strings.Join(w.lines, "\n"))
	}
	if len(w.wrong) == 0 {
		return
	}
	first := 0
	for i, line := range w.lines {
		if strings.Contains(line, "VIOLATION") {
			first = i
			break
		}
	}
	name := strings.Fields(w.lines[first])[3]
	var page []string
	for _, line := range w.lines[:first+1] {
		if f := strings.Fields(line); len(f) > 3 && (f[3] == name || !strings.HasPrefix(f[3], "db-")) {
			page = append(page, line)
		}
	}
	page = page[max(0, len(page)-50):]
	w.t.Errorf("SWARM_SEED=%d breaks the contract:\n%s\nWhat happened before the first one:\n%s", w.plan.seed, strings.Join(w.wrong, "\n"), strings.Join(page, "\n"))
}
