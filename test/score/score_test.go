// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// computed returns the boards, which take some seconds and which all tests share.
var computed = sync.OnceValues(func() (boards, error) { return compute(func(string, string) {}) })

func scores(t *testing.T) boards {
	t.Helper()
	b, err := computed()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheScoreboardIsCurrent(t *testing.T) {
	files, err := scores(t).render()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		committed, err := os.ReadFile("../../" + f.name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(f.text, string(committed)); diff != "" {
			t.Errorf("%s is stale: run make score (-computed +committed):\n%s", f.name, diff)
		}
	}
}

func TestNoOtherRuleDominatesOursExceptAtTheLoadsOnThePage(t *testing.T) {
	b, listed := scores(t), map[string][]string{}
	for _, e := range exceptions() {
		listed[e.Load] = e.Rules
	}
	for _, board := range []board{b.Storage, b.Flavors} {
		for load, rules := range board.dominated() {
			for _, rule := range rules {
				if s, _ := board.score(load, rule); !slices.Contains(listed[load], rule) {
					ours, _ := board.score(load, us)
					t.Errorf("%s: %s (%s) dominates %s (%s). Improve the rule, or explain it in exceptions", load, rule, s, us, ours)
				}
			}
		}
	}
	for load, rules := range listed {
		for _, rule := range rules {
			if !slices.Contains(b.Storage.dominated()[load], rule) && !slices.Contains(b.Flavors.dominated()[load], rule) {
				t.Errorf("%s: %s no longer dominates %s. Remove the exception", load, rule, us)
			}
		}
	}
}

// The numbers of the replay that this one has replaced. It called only the functions that compute a size, so ours is
// faster here at 60 GB/h. docs/scoreboard.md explains that.
func TestReplayReproducesTheEarlierOne(t *testing.T) {
	b := scores(t).Storage
	for rule, want := range map[string][4]score{
		"steps of 10 GB": {{0, 280}, {40, 397}, {240, 604}, {3948, 796}},
		"next hour":      {{0, 259}, {21, 277}, {240, 280}, {1916, 371}},
		us:               {{0, 200}, {0, 200}, {0, 280}, {628, 320}}, // earlier 694
		"OTC":            {{0, 120}, {0, 160}, {80, 240}, {614, 360}},
	} {
		for i, load := range []string{"15 GB/h", "20 GB/h", "30 GB/h", "60 GB/h"} {
			got, err := b.score(load, rule)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range []int{exposed, changes} {
				if math.Abs(got[m]-want[i][m]) > 0.05*want[i][m] {
					t.Errorf("%s at %s: %s, want %s (the last number is not compared)", rule, load, got, want[i])
				}
			}
		}
	}
}

func TestDominatesNeedsOneBetterMeasureAndNoWorseOne(t *testing.T) {
	for _, tc := range []struct {
		a, b score
		want bool
	}{
		{score{1, 2, 3}, score{1, 2, 3}, false}, {score{1, 2, 2}, score{1, 2, 3}, true}, {score{0, 3, 2}, score{1, 2, 3}, false},
	} {
		if got := tc.a.dominates(tc.b); got != tc.want {
			t.Errorf("%v dominates %v: %t", tc.a, tc.b, got)
		}
	}
}
