// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/test/world"
)

// mostLines is how much of the demo's output anybody reads.
const mostLines = 60

func TestDemoPrintsEachStoryInOrder(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	err := demo(world.Within(t), newConsole(&text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	sentAgain := regexp.MustCompile(`(unavailable, answers 503|was not taken: status 503|tries message \w+ again)$`) // on a busy machine
	read := slices.DeleteFunc(slices.Clone(lines), sentAgain.MatchString)
	if len(read) > mostLines {
		t.Errorf("%d lines, want at most %d:\n%s", len(read), mostLines, text.String())
	}
	if !strings.HasPrefix(lines[0], "Real: ") || !strings.HasPrefix(lines[1], "Simulated: ") {
		t.Errorf("the first lines do not say what is real and what is simulated: %q", lines[:2])
	}
	blocks := strings.Split(text.String(), "\n\n")
	all := plans()
	if len(blocks) != 1+len(all)+2 || !strings.HasPrefix(blocks[1+len(all)], "archive  ") {
		t.Fatalf("%d blocks, want a head, a story for each database with an Rds, that of archive, and the end:\n%s", len(blocks), text.String())
	}
	step := regexp.MustCompile(`^ {2,3}\d{1,2}:\d\d  (\w+ ?\w+) +\S`)
	for i, p := range all {
		story := strings.Split(blocks[1+i], "\n")
		if !strings.HasPrefix(story[0], p.Name+"  ") {
			t.Errorf("the story of %s begins with %q", p.Name, story[0])
		}
		last, actors := "", []string{}
		for _, line := range story[1:] {
			parts := step.FindStringSubmatch(line)
			if parts == nil || line[:7] < last {
				t.Errorf("%s: this line is not aligned, or before the line above it: %q", p.Name, line)
				continue
			}
			last = line[:7]
			if !sentAgain.MatchString(line) {
				actors = append(actors, strings.TrimSpace(parts[1]))
			}
		}
		if len(actors) == 9 {
			slices.Sort(actors[4:7]) // what is watched at several places at once comes in any order
		}
		want := "autopilot|workload|cloud eye|autopilot|autopilot|kubernetes|operator|cloud|cloud eye" // from armed to the alarm's end
		if got := strings.Join(actors, "|"); i > 0 && got != want {
			t.Errorf("%s: the order is\n%s, want\n%s", p.Name, got, want)
		}
	}
	if end := blocks[len(blocks)-1]; !strings.HasPrefix(end, "DATABASE") || !strings.Contains(end, "as expected") {
		t.Errorf("the end is no table and a count:\n%s", end)
	}
}
