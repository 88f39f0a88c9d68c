// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/test/world"
)

// mostLines is how much of the demo's output anybody reads.
const mostLines = 60

// sentAgain are lines that a busy machine adds.
var sentAgain = regexp.MustCompile(`(unavailable, answers 503|was not taken: status 503|tries message \w+ again)$`)

func runDemo(t *testing.T, o worldOptions) string {
	t.Helper()
	var text strings.Builder
	if err := demo(world.Within(t), newConsole(&text), o); err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	return text.String()
}

func TestDemoTellsTheSameStoryOnARealAPIServer(t *testing.T) {
	t.Parallel()
	told := make([][]string, 2)
	t.Run("both", func(t *testing.T) {
		for i, o := range []worldOptions{{}, {real: true}} {
			t.Run([]string{"memory", "real"}[i], func(t *testing.T) {
				t.Parallel()
				text := runDemo(t, o)
				checkDemo(t, text)
				told[i] = comparable(text)
			})
		}
	})
	if diff := cmp.Diff(told[0], told[1]); diff != "" {
		t.Errorf("the reports differ (-memory +real):\n%s", diff)
	}
}

// comparable returns the lines of all stories and of the table without times and ids. What is seen at several places at
// once comes in any order, so the lines of a story are sorted.
func comparable(text string) []string {
	blocks := strings.Split(text, "\n\n")[1:] // the head differs
	changing := regexp.MustCompile(`^ +\d+:\d\d|message [0-9a-f]{8}`)
	var all []string
	for _, block := range blocks {
		lines := slices.DeleteFunc(strings.Split(block, "\n"), sentAgain.MatchString)
		for i := range lines {
			lines[i] = changing.ReplaceAllString(lines[i], "")
		}
		slices.Sort(lines)
		all = append(all, lines...)
	}
	return all
}

// checkDemo checks the form of a report.
func checkDemo(t *testing.T, text string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	read := slices.DeleteFunc(slices.Clone(lines), sentAgain.MatchString)
	if len(read) > mostLines {
		t.Errorf("%d lines, want at most %d:\n%s", len(read), mostLines, text)
	}
	for i, want := range []string{"Real: ", "(Embedded|Real too): ", "Simulated: "} {
		if !regexp.MustCompile("^" + want).MatchString(lines[i]) {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
	blocks := strings.Split(text, "\n\n")
	all := plans()
	if len(blocks) != 1+len(all)+2 || !strings.HasPrefix(blocks[1+len(all)], "archive  ") {
		t.Fatalf("%d blocks, want a head, a story for each database with an Rds, that of archive, and the end:\n%s", len(blocks), text)
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
