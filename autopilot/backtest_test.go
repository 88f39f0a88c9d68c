// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"encoding/csv"
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
)

// replayed is what became of a volume.
type replayed struct {
	sizeGB, steps, readOnlyMinutes int
}

// replay runs a volume of 100 GB against a demand in GB, one value a minute, with or without the rule of the next hour.
// A database that is read-only does not write.
func replay(demand []float64, aheadMinutes float64) (r replayed) {
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
		used = append(used, Point{noon().Add(time.Duration(minute) * time.Minute), gb})
		seen := minute - dataMinutes
		if seen < 60 || ready >= 0 { // the first hour is history
			continue
		}
		if over++; !atThreshold(r.sizeGB, used[seen].Value, 90) {
			over = 0
		}
		if over < alarmMinutes {
			continue
		}
		rate := FillingAt(used[:seen+1], used[seen].Time)
		rule := growth{stepGB: 10, maxGB: 4000, thresholdPercent: 90, aheadGB: max(0, rate.Fast) * aheadMinutes / 60}
		if next = rule.newSize(r.sizeGB, used[seen].Value); next > r.sizeGB {
			ready, over = minute+growthMinutes, 0
			r.steps++
		}
	}
	return r
}

// filling returns a demand that reaches 85 GB after an hour at the rate, and goes on for four hours.
func filling(perHour float64) (demand []float64) {
	for minute := range 300 {
		demand = append(demand, 85+perHour*float64(minute-60)/60)
	}
	return demand
}

func TestTheNextHourIsNeverWorseThanOneStep(t *testing.T) {
	for rate := 1; rate <= 60; rate++ {
		before, now := replay(filling(float64(rate)), 0), replay(filling(float64(rate)), 60)
		if now.readOnlyMinutes > before.readOnlyMinutes || now.steps > before.steps {
			t.Errorf("%d GB/h: %+v, and %+v without the rule", rate, now, before)
		}
		switch rate {
		case 5, 15, 20, 30, 60:
			t.Logf("| %d | %d min, %d steps, %d GB | %d min, %d steps, %d GB |", rate,
				before.readOnlyMinutes, before.steps, before.sizeGB, now.readOnlyMinutes, now.steps, now.sizeGB)
		}
	}
}

// Real disks have bursts, clean-ups and plateaus. Each is moved up so that it reaches its threshold.
func TestRealDisksGetNoLargerStepThanTheyNeed(t *testing.T) {
	disks := realDisks(t)
	larger := 0
	for name, demand := range disks {
		before, now := replay(demand, 0), replay(demand, 60)
		if now.readOnlyMinutes > before.readOnlyMinutes {
			t.Errorf("%s: %+v, and %+v without the rule", name, now, before)
		}
		if now.sizeGB > before.sizeGB {
			larger++
			t.Errorf("%s: %d GB in the end, and %d GB without the rule", name, now.sizeGB, before.sizeGB)
		}
	}
	t.Logf("%d disks, %d larger", len(disks), larger)
}

// realDisks returns the used space in GB of each disk of the extract, one value a minute, for a volume of 100 GB whose
// highest value is 93 GB.
func realDisks(t *testing.T) map[string][]float64 {
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
		highest := 0.0
		for i := 1; i < len(row); i++ {
			at, err1 := strconv.ParseFloat(rows[0][i], 64)
			value, err2 := strconv.ParseFloat(row[i], 64)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			times, values, highest = append(times, at), append(values, value), max(highest, value)
		}
		var demand []float64
		for i := 1; i < len(times); i++ {
			for s := times[i-1]; s < times[i]; s += 60 {
				part := (s - times[i-1]) / (times[i] - times[i-1])
				demand = append(demand, 93-highest+values[i-1]+part*(values[i]-values[i-1]))
			}
		}
		disks[row[0]] = demand
	}
	return disks
}
