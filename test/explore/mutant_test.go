// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/level"
)

// mutant is a defect: a text in a file, and what stands there instead.
type mutant struct {
	world     string // in which it must be found
	file      string
	old, text string
}

// mutants returns defects that earlier versions had, or that are like them. The explorer's own check stands for the loop,
// so two of them are in it.
func mutants() map[string]mutant {
	const list, table, follow, loop, page = "autopilot/change/list.go", "autopilot/change/table.go", "autopilot/record/follow.go", "test/explore/steps_test.go", "test/explore/world_test.go"
	const version = "read.version != d.rap.version {\n\t\treturn false"
	return map[string]mutant{
		"a lost request counts for nothing":              {"flavor, the cloud", list, "ok = IsOurs(ch) &&", "ok = IsOurs(ch) && ch.State != v1alpha1.StateLost &&"},
		"the list keeps the newest 8":                    {"budget of 9", list, "now.Sub(at) < WeekSpan", "now.Before(at)"},
		"entries of others take the place of ours":       {"others", list, "case !IsOurs(ch):", "case count[\"others\"+string(ch.Kind)] >= keptOthers, !IsOurs(ch):"},
		"Replaced is recorded as Reverted":               {"flavor, an operator", table, "replaced, func(ch v1alpha1.Change, s Seen) bool { return isReset", "reverted, func(ch v1alpha1.Change, s Seen) bool { return isReset"},
		"a refusal erases a start":                       {"flavor, the cloud", table, "{states{requested}, \"\", Both, \"a clear refusal", "{states{requested, started}, \"\", Both, \"a clear refusal"},
		"an answer moves another attempt":                {"flavor, the cloud", table, "case isAnswer && !s", "case isAnswer && false && !s"},
		"a flavor that was given up is ours":             {"flavor, an operator", list, "return IsOurs(ch) && (IsPending", "return IsOurs(ch) || (IsPending"},
		"an unsent request counts as a start":            {"flavor, the cloud", table, "\"\", is(Unsent)", "lost, is(Unsent)"},
		"a request without an answer becomes refused":    {"volume, the cloud", table, " && (ch.Refusal == nil || ch.Refusal.Reason != NoAnswer)", ""},
		"a reset is written over at once":                {"volume, an operator", list, "} else if !isReset ||", "} else if true || !isReset ||"},
		"a job without effect is completed":              {"flavor, the cloud", table, "(s.JobHasFailed || s.IsAtFrom)", "s.JobHasFailed"},
		"what is completed is another writer's":          {"volume, the cloud", follow, "slices.ContainsFunc(f.Ended, isOurs) ||", ""},
		"no last look before the request":                {"volume, the cloud", loop, "; isChanged {", "; false && isChanged {"},
		"a write without the version that was read":      {"flavor, the cloud", page, version, "false && " + version},
		"a refused attempt hides the lost one before it": {"flavor, the cloud", "autopilot/seen.go", "x.To == ch.To && x.State != v1alpha1.StateRefused && x.State != v1alpha1.StateWithdrawn", "x.To == ch.To"},
		"a lost flavor counts only once it is ACTIVE":    {"flavor, the cloud", "autopilot/seen.go", "(c.Instance.Status == StatusActive || !change.IsPending(ch))", "c.Instance.Status == StatusActive"},
		"off forgets that the database is read-only":     {"volume, the cloud", follow, "s.OverThresholdSince = nil, nil, nil", "s.ReadOnly = nil, nil, nil"},
	}
}

// The explorer must find each of them. go test compiles it with the changed file in place of the real one.
func TestEachMutantIsFound(t *testing.T) {
	if !level.IsSoak(t) {
		t.Skip("LEVEL=soak runs it")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range mutants() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(root, m.file)
			source, err := os.ReadFile(path)
			if err != nil || strings.Count(string(source), m.old) != 1 {
				t.Fatalf("%s has %q %d times, %v", m.file, m.old, strings.Count(string(source), m.old), err)
			}
			changed, overlay := filepath.Join(t.TempDir(), "changed.go"), filepath.Join(t.TempDir(), "overlay.json")
			replaced, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string][]byte{changed: []byte(strings.Replace(string(source), m.old, m.text, 1)), overlay: replaced} {
				if err := os.WriteFile(file, text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			begin := time.Now()
			run := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-v", "-overlay", overlay, "-run", "TestNoOrderOfEventsBreaksAPromise/^"+strings.ReplaceAll(m.world, " ", "_")+"$", ".")
			run.Env = append(os.Environ(), "LEVEL=")
			out, err := run.CombinedOutput()
			where := regexp.MustCompile(`(?s)after \d+ events.*?\n---`).Find(out)
			if err == nil || where == nil {
				t.Fatalf("it is not found: %s", out)
			}
			t.Logf("found within %s, with the time to compile: %.3000s", time.Since(begin).Round(time.Second), where)
		})
	}
}
