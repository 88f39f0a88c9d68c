// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// board holds everything that the page shows.
type board struct {
	rules  []described // this project's first
	groups []group     // with scores
}

// described is what the page says of a rule.
type described struct{ Name, Does, Source string }

// compute runs all rules against all loads.
func compute(report func(group, load string)) (b board, err error) {
	for _, r := range rules() {
		b.rules = append(b.rules, r.described)
	}
	if b.groups, err = loads(); err != nil {
		return b, err
	}
	judge(b.groups, report)
	return b, nil
}

// score returns the score of a rule at a load, or an error if there is no such rule or load.
func (b board) score(load, rule string) (score, error) {
	i := slices.IndexFunc(b.rules, func(r described) bool { return r.Name == rule })
	for _, g := range b.groups {
		for _, l := range g.loads {
			if l.name == load && i >= 0 {
				return l.scores[i], nil
			}
		}
	}
	return score{}, fmt.Errorf("no score of the rule %q at the load %q", rule, load)
}

// sum returns the scores of all rules over the loads of a group.
func (g group) sum() []score {
	sums := make([]score, len(g.loads[0].scores))
	for _, l := range g.loads {
		for i, s := range l.scores {
			sums[i].add(s)
		}
	}
	return sums
}

// exception is a load at which other rules dominate this project's, and why the rule stays as it is.
type exception struct {
	Load  string
	Rules []string
	Why   string
}

// exceptions returns all of them. A test compares them with the scores.
func exceptions() []exception {
	return []exception{
		{"5 GB/h", []string{"steps of 10 GB", "pvc-autoresizer"},
			"The earlier alarm leads to a second growth of half of the disks that a later one would have avoided"},
		{"10 GB/h", []string{"OTC", "Alibaba DAS", "pvc-autoresizer"},
			"The same. Two steps of 15 %, rounded up, are enough for this fill; rds-autopilot begins with 10 GB"},
		{"15 GB/h", []string{"pvc-autoresizer"}, "Four growths instead of five, because rds-autopilot begins with 10 GB"},
		{"20 GB/h", []string{"OTC", "Alibaba DAS"}, "The same"},
		{"20 GB in 1 h", []string{"OTC"},
			"The last step, which is doubled, is more than the import needs. In an import of hours the doubling saves growths: see the larger ones"},
		{"50 GB in 2 h", []string{"OTC", "Alibaba DAS", "pvc-autoresizer"}, "The same"},
		{"from 40 GB", []string{"OTC"},
			"At 90 GB, rds-autopilot acts with 15 GB free and OTC with 10 GB. At 1 % a day 10 GB are enough"},
		{"40 disks, at most 88 % used",
			[]string{"steps of 10 GB", "OTC", "AWS, every 6 hours", "AWS, 4 a day", "Alibaba DAS", "pvc-autoresizer"},
			"No rule knows that these disks stay between the two alarms, so rds-autopilot grows each of them once, for nothing"},
	}
}

// dominated returns which rules dominate this project's, by load.
func (b board) dominated() map[string][]string {
	found := make(map[string][]string)
	for _, g := range b.groups {
		for _, l := range g.loads {
			for i, s := range l.scores {
				if s.dominates(l.scores[0]) {
					found[l.name] = append(found[l.name], b.rules[i].Name)
				}
			}
		}
	}
	return found
}
