// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
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
type replayed struct{ sizeGB, steps, readOnlyMinutes int }

// String returns the cell of a table.
func (r replayed) String() string { return fmt.Sprintf("%d min, %d steps", r.readOnlyMinutes, r.steps) }

func (r *replayed) add(x replayed) {
	r.sizeGB += x.sizeGB
	r.steps += x.steps
	r.readOnlyMinutes += x.readOnlyMinutes
}

// scene is what a rule sees of a volume: measurements up to 7 minutes ago, one a minute, and its own growths.
type scene struct {
	sizeGB   int
	used     []float64 // GB
	readOnly bool      // by those measurements
	changes  []v1alpha1.Change
	now      time.Time
}

func (s scene) last() float64 { return s.used[len(s.used)-1] }

// rule is one column of the table in docs/decisions.md.
type rule struct {
	name   string
	values int // as many values in a row raise the alarm
	full   func(sizeGB int, usedGB float64) bool
	next   func(scene) int // the new size at an alarm
	early  bool            // a sweep may grow the volume before its alarm
}

// most returns the largest used space that a read-only database may have by now.
func (s scene) most() float64 {
	if s.readOnly {
		return max(s.last(), ReadOnlyAt(s.sizeGB))
	}
	return s.last()
}

// rules returns the columns. Each grows a read-only database until it is writable.
func rules() []rule {
	at90 := func(sizeGB int, usedGB float64) bool { return usedGB >= 0.9*float64(sizeGB) }
	tens := func(s scene) int {
		size := s.sizeGB + 10
		for at90(size, s.last()) || s.readOnly && !writable(size, s.most()) {
			size += 10
		}
		return size
	}
	nextHour := func(s scene) int {
		_, fast := pace(s.used)
		size := tens(s)
		most := size + s.sizeGB/2
		for size+10 <= most && fast > 0 && s.last()+fast >= ReadOnlyAt(size) {
			size += 10
		}
		return size
	}
	otc := func(sizeGB int, usedGB float64) bool { return float64(sizeGB)-usedGB <= max(10, float64(sizeGB)/10) }
	return []rule{
		{"steps of 10 GB, alarm at 90 %", alarmMinutes, at90, tens, false},
		{"the next hour by the rate, and early steps", alarmMinutes, at90, nextHour, true},
		{"this rule", alarmMinutes, func(sizeGB int, usedGB float64) bool { return atThreshold(sizeGB, usedGB, 90) },
			func(s scene) int {
				g := growth{stepGB: nextStep(s.sizeGB, v1alpha1.Storage{StepGB: 10}, s.changes, s.now), maxGB: 4000, thresholdPercent: 90, readOnly: s.readOnly}
				return g.newSize(s.sizeGB, s.last())
			}, false},
		{"OTC's own autoscaling", 1, otc, func(s scene) int {
			size := s.sizeGB
			for size == s.sizeGB || s.readOnly && !writable(size, s.most()) {
				size = RoundUp(size * 115 / 100)
			}
			return size
		}, false},
	}
}

// replay runs a volume against a demand in GB, one value a minute. A read-only database does not write before it is
// writable again. Then it writes at once what it could not write before.
func replay(sizeGB int, demand []float64, with rule) (r replayed) {
	r.sizeGB = sizeGB
	s := scene{sizeGB: sizeGB}
	var used []float64
	var sizes []int
	isReadOnly, ready, over, grownAt, early := false, -1, 0, -1, 0
	next := 0
	for minute, wants := range demand {
		if minute == ready {
			s.changes = append([]v1alpha1.Change{{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot,
				Outcome: v1alpha1.OutcomeCompleted, From: strconv.Itoa(r.sizeGB), To: strconv.Itoa(next),
				CompletionTime: *Micro(noon().Add(time.Duration(minute) * time.Minute))}}, s.changes...)
			r.sizeGB, ready, over, grownAt = next, -1, 0, minute
		}
		if isReadOnly && writable(r.sizeGB, used[minute-1]) {
			isReadOnly = false
		}
		gb := min(wants, ReadOnlyAt(r.sizeGB))
		if isReadOnly {
			gb = used[minute-1]
		}
		if isReadOnly = isReadOnly || readOnlyNow(r.sizeGB, gb); isReadOnly {
			r.readOnlyMinutes++
		}
		used, sizes = append(used, gb), append(sizes, r.sizeGB)
		seen := minute - dataMinutes
		if seen < 0 {
			continue
		}
		switch {
		case readOnlyNow(sizes[seen], used[seen]) && !writable(r.sizeGB, used[seen]):
			s.readOnly = true
		case writable(r.sizeGB, used[seen]):
			s.readOnly = false
		}
		s.sizeGB, s.used, s.now = r.sizeGB, used[:seen+1], noon().Add(time.Duration(minute)*time.Minute)
		if over++; !with.full(r.sizeGB, used[seen]) {
			over = 0
		}
		if ready >= 0 || seen < 60 || seen <= grownAt { // the first hour is history
			continue
		}
		isRecent := grownAt >= 0 && minute-grownAt < int(episodeSpan.Minutes()) // the alarm of the growth goes on
		switch {
		case s.readOnly, over >= with.values, over > 0 && isRecent:
		case with.early && minute%sweepMinutes == 0 && over == 0 && early == 0 && r.steps < 2 && fillsSoon(s):
			early++
		default:
			continue
		}
		if next = with.next(s); next > r.sizeGB {
			ready, over = minute+growthMinutes, 0
			r.steps++
		}
	}
	return r
}

// pace returns the median and the fast rate of the last hour in GB per hour, as the rule computed them that the present
// one has replaced. Both are zero if the used space did not rise for half of the hour.
func pace(used []float64) (middle, fast float64) {
	const parts = 24
	if len(used) < 61 {
		return 0, 0
	}
	type point struct{ hour, gb float64 }
	var points []point
	hour := used[len(used)-61:]
	for i := range parts {
		var bucket []point
		for m, gb := range hour {
			if min(parts*m/60, parts-1) == i {
				bucket = append(bucket, point{float64(m) / 60, gb})
			}
		}
		slices.SortFunc(bucket, func(a, b point) int { return cmp.Compare(a.gb, b.gb) })
		points = append(points, bucket[len(bucket)/2])
	}
	var rates []float64
	for i, a := range points {
		for _, b := range points[i+1:] {
			if b.hour-a.hour >= (points[parts-1].hour-points[0].hour)/4 {
				rates = append(rates, (b.gb-a.gb)/(b.hour-a.hour))
			}
		}
	}
	slices.Sort(rates)
	at := func(q float64) float64 { return rates[int(math.Round(q*float64(len(rates)-1)))] }
	middle, fast = at(0.5), at(0.9)
	rising := 0.0
	for i, p := range points[1:] {
		if took := p.hour - points[i].hour; p.gb-points[i].gb > 0.25*fast*took {
			rising += took
		}
	}
	if fast <= 0 || rising < 0.5 {
		return 0, 0
	}
	return middle, fast
}

// fillsSoon reports whether the replaced rule made an early step: at least 60 % used, nothing freed for 6 hours, and
// read-only within 30 minutes.
func fillsSoon(s scene) bool {
	middle, fast := pace(s.used)
	if middle <= 0 || s.last() < 0.6*float64(s.sizeGB) || s.last()+fast/2 < ReadOnlyAt(s.sizeGB) || len(s.used) < 360 {
		return false
	}
	highest := 0.0
	for five := range slices.Chunk(s.used[len(s.used)-360:], 5) {
		sum := 0.0
		for _, gb := range five {
			sum += gb / 5
		}
		if sum < 0.99*highest {
			return false
		}
		highest = max(highest, sum)
	}
	return true
}

// A fill of five hours begins in the middle of the real shapes.
func TestThisRuleIsBetterForAFillOnRealDisks(t *testing.T) {
	for _, rate := range []float64{15, 20, 30, 60} {
		var sums []replayed
		line := fmt.Sprintf("| %.0f |", rate)
		for _, with := range rules() {
			var sum replayed
			for _, demand := range realDisks(t, 75, 1) {
				for minute := range demand {
					demand[minute] += rate * min(5, max(0, float64(minute-480)/60))
				}
				sum.add(replay(100, demand, with))
			}
			sums, line = append(sums, sum), line+fmt.Sprintf(" %s |", sum)
		}
		t.Log(line)
		tens, nextHour, this := sums[0], sums[1], sums[2]
		if this.readOnlyMinutes > min(tens.readOnlyMinutes, nextHour.readOnlyMinutes) || this.steps > tens.steps ||
			rate <= 30 && this.readOnlyMinutes > 0 {
			t.Errorf("%.0f GB/h: %s, before that %s and %s", rate, this, tens, nextHour)
		}
	}
}

// Without a fill, only a disk whose highest value is at the alarm gets a step, because its threshold is lower now.
func TestRealDisksWithoutAFillGetAtMostOneStep(t *testing.T) {
	this := rules()[2]
	for highest, want := range map[float64]int{84: 0, 85: 10} {
		var sum replayed
		for name, demand := range realDisks(t, highest, 1) {
			r := replay(100, demand, this)
			if sum.add(r); r.sizeGB > 110 || r.readOnlyMinutes > 0 {
				t.Errorf("%s: %d GB, %s", name, r.sizeGB, r)
			}
		}
		if sum.steps != want {
			t.Errorf("at most %.0f GB used: %d steps, want %d", highest, sum.steps, want)
		}
	}
}

func TestThisRuleNeedsFewerChangesOfALargeVolume(t *testing.T) {
	grows := func() (demand []float64) { // by 1 % a day for 90 days
		for minute := range 90 * 24 * 60 {
			demand = append(demand, 800*math.Pow(1.01, float64(minute)/(24*60)))
		}
		return demand
	}
	imports := func() (demand []float64) { // half of the volume in 8 hours, after and before 4 hours of rest
		for minute := range 16 * 60 {
			demand = append(demand, 375+250*min(1, max(0, float64(minute-240)/480)))
		}
		return demand
	}
	for _, tc := range []struct {
		name     string
		sizeGB   int
		demand   []float64
		old, new int
	}{
		{"1000 GB, 1 % a day", 1000, grows(), 118, 12}, {"half of 500 GB in 8 hours", 500, imports(), 20, 6},
	} {
		old, this := replay(tc.sizeGB, tc.demand, rules()[0]), replay(tc.sizeGB, tc.demand, rules()[2])
		if old.steps != tc.old || this.steps != tc.new || this.readOnlyMinutes > 0 {
			t.Errorf("%s: %s, %d GB; with steps of 10 GB %s", tc.name, this, this.sizeGB, old)
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
