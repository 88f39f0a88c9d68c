// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/test/level"
)

const (
	shortSeeds  = 2  // the last seed that make test runs. A run of these seeds takes 10 simulated days
	provenSeeds = 10 // the last seed that make test-long runs. make soak runs others
)

// TestSwarm runs simulated weeks of the service and judges them by the contract. make test runs two seeds, make test-long
// always the same ones for at most five minutes, and make soak new ones for SOAK_TIME. SWARM_SEEDS runs these: 7 or 100-199.
func TestSwarm(t *testing.T) {
	t.Parallel()
	seeds, limit := [2]uint64{1, shortSeeds}, time.Duration(0)
	switch {
	case os.Getenv("SWARM_SEEDS") != "":
		seeds = swarmSeeds(t, os.Getenv("SWARM_SEEDS"))
	case level.IsSoak(t):
		seeds, limit = [2]uint64{uint64(time.Now().UnixNano()), math.MaxUint64}, 10*time.Minute
		if text := os.Getenv("SOAK_TIME"); text != "" {
			var err error
			if limit, err = time.ParseDuration(text); err != nil {
				t.Fatal("SOAK_TIME:", err)
			}
		}
	case level.IsLong(t):
		seeds, limit = [2]uint64{shortSeeds + 1, provenSeeds}, 5*time.Minute
	}
	began, next := time.Now(), atomic.Uint64{}
	next.Store(seeds[0])
	for i := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint("core ", i), func(t *testing.T) {
			t.Parallel()
			for seed := next.Add(1) - 1; seed <= seeds[1] && (limit == 0 || time.Since(began) < limit); seed = next.Add(1) - 1 {
				start := time.Now()
				ok := t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { runPlan(t, drawPlan(seed)) })
				})
				t.Logf("seed %d: %t after %v", seed, ok, time.Since(start).Round(time.Second))
			}
		})
	}
}

func swarmSeeds(t *testing.T, text string) (seeds [2]uint64) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	for i, part := range []string{from, to} {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			t.Fatal("SWARM_SEEDS:", err)
		}
		seeds[i] = n
	}
	return seeds
}

// runPlan runs the plan of a seed, and fails the test after a violation.
func runPlan(t *testing.T, p plan) {
	if p.spring {
		time.Sleep(time.Until(time.Date(2000, 3, 18, 0, 0, 0, 0, time.UTC)))
	}
	w := newSwarm(t, p)
	events := p.events
	for end := time.Duration(p.days) * day; w.at() < min(end, w.endsAt()); time.Sleep(tick) {
		for ; len(events) > 0 && events[0].at <= w.at(); events = events[1:] {
			w.databases[events[0].database].patchPolicy(events[0].policy)
		}
		for _, d := range w.databases {
			d.advance()
		}
		if w.at()%operatorPeriod < tick {
			w.operate()
		}
		for _, d := range w.databases {
			d.judgeReadOnly()
			d.allowCalls()
		}
		if w.at()%time.Hour < tick {
			w.judgeSettled()
		}
		if w.at()%day < tick {
			w.judgeDay()
		}
	}
	w.report()
}

// endsAt returns when the run ends: two hours after the first violation, or never.
func (w *swarm) endsAt() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.end
}

// report fails with the timeline around the first violation.
func (w *swarm) report() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if os.Getenv("SWARM_TIMELINE") != "" {
		w.t.Log("\n" + strings.Join(w.lines, "\n"))
	}
	if len(w.violations) == 0 {
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
	w.t.Errorf("SWARM_SEEDS=%d breaks the contract:\n%s\nThe timeline before the first violation:\n%s", w.plan.seed, strings.Join(w.violations, "\n"), strings.Join(page, "\n"))
}
