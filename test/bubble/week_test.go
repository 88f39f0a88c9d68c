// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

var update = flag.Bool("update", false, "write testdata/week.golden, and doctor's answer in the documents, anew")

const weekGolden = "testdata/week.golden"

// The golden summary shows in review what a change of behaviour does to twenty databases.
func TestAWeekOfTwentyDatabases(t *testing.T) {
	level.Long(t)
	t.Parallel()
	passWeek(t, 0, 7*day, func(w *week) {
		for _, d := range w.databases {
			if d.readOnly && w.book.page(d.name).readOnly == 0 {
				t.Errorf("%s is meant to show a database that nobody can keep from being read-only", d.name)
			}
		}
		golden(t, w.report())
	})
}

// Some hours of it for every change: imports, changes of flavor, and the process restarts.
func TestTwentyDatabasesForSomeHours(t *testing.T) {
	level.Short(t)
	t.Parallel()
	passWeek(t, on(3, 3), on(3, 4), func(w *week) {
		if volume, _ := w.book.page("import-small").changes(); volume == 0 {
			t.Error("nothing grew in these hours")
		}
	})
}

// passWeek lets a part of the week pass on the clock of a bubble.
func passWeek(t *testing.T, from, to time.Duration, end func(*week)) {
	synctest.Test(t, func(t *testing.T) {
		monday := time.Date(2000, 1, 3, 0, 0, 0, 0, time.UTC) // bubbles begin on the Saturday before
		time.Sleep(time.Until(monday.Add(from - 2*time.Hour + 15*time.Second)))
		w := newWeek(t)
		stop := w.start(unbounded)
		time.Sleep(15 * time.Second) // apart from what comes with the full minute
		for at := from - 2*time.Hour; at < to; at += time.Minute {
			switch at {
			case from:
				w.allArmed("before")
			case on(3, 3.5): // an import has just crossed its threshold
				stop()
			case on(3, 3.5) + 2*time.Minute:
				stop = w.start(unbounded)
			case on(3, 18):
				w.enlargeReplica()
			}
			w.minute(at)
			time.Sleep(time.Minute)
		}
		stop()
		w.allArmed("after")
		w.book.mu.Lock()
		defer w.book.mu.Unlock()
		w.check()
		end(w)
	})
}

func golden(t *testing.T, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(weekGolden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(weekGolden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n"), cmp.Comparer(sameButAMinute)); diff != "" {
		t.Errorf("the week went differently (−golden +now); where that is meant, run this test with -update:\n%s", diff)
	}
}

var clockTime = regexp.MustCompile(`\d\d:\d\d(:\d\d)?`)

// sameButAMinute reports whether two lines differ in times of day by at most a minute. Checks come each half minute, so the
// scheduling of goroutines decides on which side of a full minute one falls.
func sameButAMinute(a, b string) bool {
	if clockTime.ReplaceAllString(a, "") != clockTime.ReplaceAllString(b, "") {
		return false
	}
	at := clockTime.FindAllString(b, -1)
	for i, text := range clockTime.FindAllString(a, -1) {
		layout := "15:04:05"[:len(text)]
		x, errX := time.Parse(layout, text)
		y, errY := time.Parse(layout, at[i])
		if errX != nil || errY != nil || x.Sub(y).Abs() > time.Minute {
			return false
		}
	}
	return true
}

func (w *week) allArmed(when string) {
	w.t.Helper()
	all := slices.DeleteFunc(w.kube.Autopilots(), func(a *v1alpha1.RdsAutopilot) bool {
		return !meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionArmed)
	})
	if len(all) != len(w.databases) {
		w.t.Errorf("%s, %d of %d databases are armed", when, len(all), len(w.databases))
	}
}

// enlargeReplica is a person at the console.
func (w *week) enlargeReplica() {
	if err := w.sim.ChangeInstance(w.ids["replicated-read"], func(in *simcloud.Instance) { in.Flavor = "rds.pg.n1.xlarge.4.rr" }); err != nil {
		w.t.Fatal(err)
	}
}

// check holds what must be true whatever the golden summary says.
func (w *week) check() {
	for _, d := range w.databases {
		p := w.book.page(d.name)
		rap := w.autopilot(d.name)
		if d.quiet && len(p.patches)+len(p.events)+len(rap.Status.Decisions) > 0 {
			w.t.Errorf("%s is quiet, and yet: %d patches, %v", d.name, len(p.patches), p.events)
		}
		if p.readOnly > 0 && !d.readOnly {
			w.t.Errorf("%s was read-only for %d minutes, though its cap and the alarm's delay allow to prevent it", d.name, p.readOnly)
		}
		w.checkPatches(d.name, p, rap)
	}
}

func (w *week) checkPatches(name string, p *weekPage, rap *v1alpha1.RdsAutopilot) {
	grownFor := 0.0 // used GB at the last growth
	for _, patch := range p.patches {
		had := patch.rds.Spec
		if rap.Spec.Mode != v1alpha1.ModeAuto {
			w.t.Errorf("%s is patched in mode %s", name, rap.Spec.Mode)
		}
		if patch.flavor != "" {
			from, to := w.flavors[had.FlavorRef], w.flavors[patch.flavor]
			if to.VCPUs < from.VCPUs || to.MemoryGB < from.MemoryGB || to.VCPUs == from.VCPUs && to.MemoryGB == from.MemoryGB {
				w.t.Errorf("%s: %s → %s is not larger", name, had.FlavorRef, patch.flavor)
			}
			b := rap.Status.Baseline
			if to.VCPUs > int(given(rap.Spec.Flavor.MaxVCPUs, 4*b.VCPUs)) || to.MemoryGB > int(given(rap.Spec.Flavor.MaxMemoryGB, 4*b.MemoryGB)) {
				w.t.Errorf("%s: %s is past the caps", name, patch.flavor)
			}
			continue
		}
		if patch.volumeGB > int(rap.Status.MaxGB) || patch.volumeGB <= int(had.VolumeSize) {
			w.t.Errorf("%s: %d → %d GB, maxGB is %d", name, had.VolumeSize, patch.volumeGB, rap.Status.MaxGB)
		}
		percent, err := strconv.ParseFloat(patch.intent.ValuePercent, 64)
		if err != nil {
			w.t.Errorf("%s: → %d GB without evidence: %v", name, patch.volumeGB, err)
		}
		used := percent / 100 * float64(had.VolumeSize)
		if used <= grownFor {
			w.t.Errorf("%s: → %d GB for %.1f GB used, after a growth for %.1f GB", name, patch.volumeGB, used, grownFor)
		}
		grownFor = used
	}
	open := 0
	if rap.Status.Pending != nil {
		open = 1
	}
	if p.completed+open != len(p.patches) {
		w.t.Errorf("%s: %d changes were asked for, %d have come and %d is under way", name, len(p.patches), p.completed, open)
	}
}

func given(p *int32, otherwise int32) int32 {
	if p == nil {
		return otherwise
	}
	return *p
}

func (w *week) autopilot(name string) *v1alpha1.RdsAutopilot {
	w.t.Helper()
	a := w.fleet.autopilot(weekNamespace, name)
	if a == nil {
		w.t.Fatalf("there is no RdsAutopilot %s", name)
	}
	return a
}
