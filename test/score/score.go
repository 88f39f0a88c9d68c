// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strconv"
	"sync"
)

// score is what a rule made of a load. Less is better in each measure. There is no single number.
type score [3]float64

// The measures.
const (
	exposed = iota // minutes read-only
	changes        // growths
	unused         // GB·days that were there and not used
)

func (s *score) add(x score) {
	for i := range s {
		s[i] += x[i]
	}
}

// dominates reports whether a score is better than another in one measure, and worse in none.
func (s score) dominates(x score) bool {
	better := false
	for i := range s {
		if s[i] > x[i] {
			return false
		}
		better = better || s[i] < x[i]
	}
	return better
}

// String returns the cell of a table.
func (s score) String() string {
	return thousands(s[exposed]) + " / " + thousands(s[changes]) + " / " + thousands(s[unused])
}

// thousands returns a rounded number below a million with a comma.
func thousands(x float64) string {
	n := int(math.Round(x))
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// judge runs all rules against all loads of the groups and enters the scores. report is called after each load.
func judge(groups []group, report func(group, load string)) {
	for _, g := range groups {
		for i := range g.loads {
			l := &g.loads[i]
			scores := make([][]score, len(l.series)) // a fixed order of the sum, because rounding depends on it
			var run sync.WaitGroup
			for n, s := range l.series {
				run.Go(func() {
					for _, r := range rules() {
						scores[n] = append(scores[n], replayVolume(s.size, s.demand, r.rule))
					}
				})
			}
			run.Wait()
			l.scores = make([]score, len(scores[0]))
			for _, one := range scores {
				for rule := range one {
					l.scores[rule].add(one[rule])
				}
			}
			report(g.name, l.name)
		}
	}
}
