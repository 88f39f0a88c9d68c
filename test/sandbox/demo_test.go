// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/world"
)

// repeated matches the lines that only a busy machine prints.
var repeated = regexp.MustCompile(`(?m)^.*(unavailable, answers|was not taken: status|tries message \w+) (503|again)\n`)

// The demo fails by itself if a database does not grow as expected. This test checks what it prints.
func TestDemoTellsOneStoryPerDatabaseAndWhatToDoNext(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := demo(world.Within(t), newConsole(&out), worldOptions{real: apiserver.Real()}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	text := repeated.ReplaceAllString(out.String(), "")
	if n := strings.Count(text, "\n"); n > 70 {
		t.Errorf("%d lines, want at most 70", n)
	}
	blocks := strings.Split(text, "\n\n")
	begins := []string{"Real:  ", "orders  ", "shop  ", "reports  ", "archive  ", "DATABASE ", "Next"}
	if len(blocks) != len(begins) {
		t.Fatalf("%d blocks, want %d:\n%s", len(blocks), len(begins), text)
	}
	for i, want := range begins {
		if !strings.HasPrefix(blocks[i], want) {
			t.Errorf("block %d does not begin with %q:\n%s", i, want, blocks[i])
		}
	}
	for _, story := range blocks[1:5] {
		checkStory(t, story)
	}
	// From armed to the end of the alarm. Several watches print the three lines in the middle, in any order.
	step := regexp.MustCompile(`(?m)^ +\d+:\d\d  (\w+ ?\w+)  `)
	for _, story := range blocks[2:4] {
		var actors []string
		for _, match := range step.FindAllStringSubmatch(story, -1) {
			actors = append(actors, match[1])
		}
		if len(actors) == 9 {
			slices.Sort(actors[4:7])
		}
		want := "autopilot|workload|cloud eye|autopilot|autopilot|kubernetes|operator|cloud|cloud eye"
		if diff := cmp.Diff(want, strings.Join(actors, "|")); diff != "" {
			t.Errorf("the actors differ (-want +got):\n%s%s", diff, story)
		}
	}
	if !strings.Contains(blocks[5], " as expected") {
		t.Errorf("the table does not end with a count:\n%s", blocks[5])
	}
	pages := regexp.MustCompile(`docs/\S+\.md`).FindAllString(blocks[6], -1)
	if !strings.Contains(blocks[6], "make sandbox") || !slices.Contains(pages, "docs/first-day.md") {
		t.Errorf("the end names neither the sandbox nor the first day:\n%s", blocks[6])
	}
	for _, page := range pages {
		if _, err := os.Stat(filepath.Join("../..", page)); err != nil {
			t.Error(err)
		}
	}
}

// checkStory fails unless the lines of a story are aligned and in the order of time.
func checkStory(t *testing.T, story string) {
	t.Helper()
	line := regexp.MustCompile(`^ {2,3}\d{1,2}:\d\d  [\w ]{10}  \S`)
	lines := strings.Split(strings.TrimSuffix(story, "\n"), "\n")[1:]
	for _, l := range lines {
		if !line.MatchString(l) {
			t.Fatalf("this line is not aligned: %q", l)
		}
	}
	if !slices.IsSortedFunc(lines, func(a, b string) int { return strings.Compare(a[:7], b[:7]) }) {
		t.Errorf("the lines are not in the order of time:\n%s", story)
	}
}
