// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"encoding/csv"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// The delays of the cloud (docs/cloud-facts.md): an alarm after 5 values, data that is up to 10 minutes late, and a
// growth of 3 to 5 minutes.
const (
	alarmMinutes  = 5
	dataMinutes   = 7
	growthMinutes = 5
	sweepMinutes  = 5
)

// replayed is what became of a volume.
type replayed struct {
	sizeGB, steps, early, readOnlyMinutes int
	// unusedGBDays is how much larger the volume was than its used space needed, in GB times days.
	unusedGBDays float64
}

// String returns the row of a table.
func (r replayed) String() string {
	return fmt.Sprintf("%d min, %d steps, %.0f GB·days", r.readOnlyMinutes, r.steps, r.unusedGBDays)
}

func (r *replayed) add(x replayed) {
	r.steps += x.steps
	r.early += x.early
	r.readOnlyMinutes += x.readOnlyMinutes
	r.unusedGBDays += x.unusedGBDays
}

// rules are the rules that a replay compares.
type rules struct {
	aheadMinutes float64
	early        bool
}

// replay runs a volume of 100 GB against a demand in GB, one value a minute. A database that is read-only does not
// write. Early steps are those before the threshold.
func replay(demand []float64, with rules) (r replayed) {
	r.sizeGB = 100
	var used []Point
	ready, next, over := -1, 0, 0
	for minute, wants := range demand {
		if minute == ready {
			r.sizeGB, ready = next, -1
		}
		gb := min(wants, ReadOnlyAt(r.sizeGB))
		if wants > gb {
			r.readOnlyMinutes++
		}
		r.unusedGBDays += float64(max(0, r.sizeGB-max(100, roundUp(int(gb/0.9))))) / (24 * 60)
		used = append(used, Point{noon().Add(time.Duration(minute) * time.Minute), gb})
		seen := minute - dataMinutes
		if seen < 60 || ready >= 0 { // the first hour is history
			continue
		}
		now := used[seen]
		if over++; !atThreshold(r.sizeGB, now.Value, 90) {
			over = 0
		}
		rule := growth{stepGB: 10, maxGB: 4000, thresholdPercent: 90}
		if over < alarmMinutes {
			swept := minute%sweepMinutes == 0 && over == 0 && r.early == 0 && r.steps < volumeChanges
			if !with.early || !swept || !fillsSoon(r.sizeGB, now.Value, FillingAt(used[:seen+1], now.Time)) ||
				!NothingFreed(everyFive(used[:seen+1]), now.Time) {
				continue
			}
			rule.early = true
			r.early++
		}
		rule.aheadGB = max(0, FillingAt(used[:seen+1], now.Time).Fast) * with.aheadMinutes / 60
		if next = rule.newSize(r.sizeGB, now.Value); next > r.sizeGB {
			ready, over = minute+growthMinutes, 0
			r.steps++
		}
	}
	return r
}

// everyFive returns the averages of FreedPeriod.
func everyFive(used []Point) (averages []Point) {
	for i := max(0, len(used)-int(FreedSpan.Minutes())) / 5 * 5; i+5 <= len(used); i += 5 {
		sum := 0.0
		for _, p := range used[i : i+5] {
			sum += p.Value
		}
		averages = append(averages, Point{used[i].Time, sum / 5})
	}
	return averages
}

// filling returns a demand that rests for six hours, reaches 85 GB after one more at the rate, and goes on for four
// hours.
func filling(perHour float64) (demand []float64) {
	for minute := range 660 {
		demand = append(demand, 85+perHour*max(-1, float64(minute-420)/60))
	}
	return demand
}

// The rules of the table in docs/decisions.md, from the oldest to the newest.
var (
	oneStep  = rules{}
	nextHour = rules{aheadMinutes: 60}
	early    = rules{aheadMinutes: 60, early: true}
)

func TestNewRulesAreNeverWorseForASteadyFill(t *testing.T) {
	for rate := 1; rate <= 60; rate++ {
		demand := filling(float64(rate))
		before, ahead, now := replay(demand, oneStep), replay(demand, nextHour), replay(demand, early)
		if ahead.readOnlyMinutes > before.readOnlyMinutes || ahead.steps > before.steps ||
			now.readOnlyMinutes > ahead.readOnlyMinutes || now.steps > before.steps {
			t.Errorf("%d GB/h: %+v, %+v with the next hour, %+v with early steps", rate, before, ahead, now)
		}
		if rate <= 25 && now.readOnlyMinutes > 0 {
			t.Errorf("%d GB/h: %d minutes read-only", rate, now.readOnlyMinutes)
		}
		switch rate {
		case 5, 15, 20, 30, 60:
			t.Logf("| %d | %s | %s | %s |", rate, before, ahead, now)
		}
	}
}

// Real disks have bursts, clean-ups and plateaus. Their highest value is at the alarm or below it, and the changes are
// as they were or ten times as large.
func TestRealDisksGetNoNeedlessStep(t *testing.T) {
	for _, tc := range []struct{ highest, scale float64 }{{85, 10}, {89, 3}, {93, 1}} {
		for name, demand := range realDisks(t, tc.highest, tc.scale) {
			before, now := replay(demand, oneStep), replay(demand, early)
			if now.readOnlyMinutes > before.readOnlyMinutes || tc.scale == 1 && now.sizeGB > before.sizeGB {
				t.Errorf("%s: %+v, and %+v before", name, now, before)
			}
			if now.early > 0 && before.steps == 0 {
				t.Errorf("%s %+v: %d early steps, and no alarm", name, tc, now.early)
			}
		}
	}
}

// A fill that begins in the middle of the real shapes.
func TestNewRulesAreBetterForAFillOnRealDisks(t *testing.T) {
	for _, rate := range []float64{1, 5, 15, 20, 30, 60} {
		var sum [3]replayed
		for _, demand := range realDisks(t, 75, 1) {
			for minute := range demand {
				demand[minute] += rate * min(5, max(0, float64(minute-480)/60))
			}
			for i, with := range []rules{oneStep, nextHour, early} {
				sum[i].add(replay(demand, with))
			}
		}
		t.Logf("| %.0f | %s | %s | %s |", rate, sum[0], sum[1], sum[2])
		if sum[1].readOnlyMinutes > sum[0].readOnlyMinutes || sum[2].readOnlyMinutes > sum[1].readOnlyMinutes {
			t.Errorf("%.0f GB/h: more minutes read-only", rate)
		}
		if rate == 20 && (sum[2].early == 0 || sum[2].readOnlyMinutes >= sum[1].readOnlyMinutes) {
			t.Errorf("20 GB/h: %+v", sum[2])
		}
	}
}

// realDisks returns the used space in GB of each disk of the extract, one value a minute, for a volume of 100 GB. The
// changes are multiplied by scale.
func realDisks(t *testing.T, highest, scale float64) map[string][]float64 {
	t.Helper()
	f, err := os.Open("testdata/backtest/disks.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	disks := map[string][]float64{}
	for _, row := range rows[1:] {
		var times, values []float64
		top := 0.0
		for i := 1; i < len(row); i++ {
			at, err1 := strconv.ParseFloat(rows[0][i], 64)
			value, err2 := strconv.ParseFloat(row[i], 64)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			times, values, top = append(times, at), append(values, scale*value), max(top, scale*value)
		}
		var demand []float64
		for i := 1; i < len(times); i++ {
			for s := times[i-1]; s < times[i]; s += 60 {
				part := (s - times[i-1]) / (times[i] - times[i-1])
				demand = append(demand, max(1, highest-top+values[i-1]+part*(values[i]-values[i-1])))
			}
		}
		disks[row[0]] = demand
	}
	return disks
}
