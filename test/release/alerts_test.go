// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const deploy = "../../deploy"

// runIn runs a program in a folder. If the program fails, the test fails with its output.
func runIn(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// rule is one rule of a file for Prometheus.
type rule struct {
	Alert         string            `json:"alert"`
	Expr          string            `json:"expr"`
	For           string            `json:"for,omitempty"`
	KeepFiringFor string            `json:"keep_firing_for,omitempty"`
	Labels        map[string]string `json:"labels"`
	Annotations   map[string]string `json:"annotations"`
}

// ruleFile is a rule file of Prometheus. A PrometheusRule has the same content under spec.
type ruleFile struct {
	Groups []struct {
		Name     string `json:"name"`
		Interval string `json:"interval,omitempty"`
		Rules    []rule `json:"rules"`
	} `json:"groups"`
}

func alertRules(t *testing.T) ruleFile {
	t.Helper()
	var manifest struct {
		APIVersion, Kind string
		Metadata         any
		Spec             ruleFile
	}
	if err := yaml.UnmarshalStrict(read(t, deploy+"/alerts.yaml"), &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest.Spec.Groups) == 0 {
		t.Fatal("no rules")
	}
	return manifest.Spec
}

func (r ruleFile) write(t *testing.T, path string) {
	t.Helper()
	text, err := yaml.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, text)
}

const cases = "testdata/alerts-cases.yaml"

func TestEveryAlertFiresAndStaysSilent(t *testing.T) {
	promtool, dir := tool(t, "promtool"), t.TempDir()
	alertRules(t).write(t, dir+"/alerts.yaml")
	writeFile(t, dir+"/cases.yaml", read(t, cases))
	runIn(t, dir, promtool, "check", "rules", "--lint=all", "alerts.yaml")
	runIn(t, dir, promtool, "test", "rules", "cases.yaml")

	// A case that cannot fail shows nothing: without any "for", some must.
	eager := alertRules(t)
	for _, g := range eager.Groups {
		for i := range g.Rules {
			g.Rules[i].For = ""
		}
	}
	eager.write(t, dir+"/alerts.yaml")
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", dir+"/cases.yaml").CombinedOutput(); err == nil || !bytes.Contains(out, []byte("FAILED")) {
		t.Errorf("alerts that fire at once pass as well: %v\n%s", err, out)
	}
}

func TestEveryAlertHasAFiringAndASilentCase(t *testing.T) {
	var file struct {
		Tests []struct {
			Checks []struct {
				Expr  string `json:"expr"`
				Fires []any  `json:"exp_samples"`
			} `json:"promql_expr_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(read(t, cases), &file); err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`alertname="(\w+)"`)
	fires, silentAlone := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		silent := true
		alert := ""
		for _, c := range test.Checks {
			alert = named.FindStringSubmatch(c.Expr)[1]
			fires[alert] = fires[alert] || len(c.Fires) > 0
			silent = silent && len(c.Fires) == 0
		}
		silentAlone[alert] = silentAlone[alert] || silent
	}
	for _, g := range alertRules(t).Groups {
		for _, r := range g.Rules {
			if !fires[r.Alert] || !silentAlone[r.Alert] {
				t.Errorf("%s: a case in which it fires: %t; one in which it never does: %t", r.Alert, fires[r.Alert], silentAlone[r.Alert])
			}
		}
	}
}

// TestEveryAlertHasItsPage looks for the page that runbook_url names, and for its three parts.
func TestEveryAlertHasItsPage(t *testing.T) {
	pages := map[string]bool{}
	for _, g := range alertRules(t).Groups {
		for _, r := range g.Rules {
			name := filepath.Base(r.Annotations["runbook_url"])
			pages[name] = true
			page := string(read(t, "../../docs/runbooks/"+name))
			for _, part := range []string{"# " + r.Alert + "\n", "\nSeverity: " + r.Labels["severity"] + ".\n", "\n## What it means\n", "\n## Where to look\n", "\n## What to do\n"} {
				if !strings.Contains("\n"+page, part) {
					t.Errorf("docs/runbooks/%s has no %q", name, strings.TrimSpace(part))
				}
			}
		}
	}
	files, err := filepath.Glob("../../docs/runbooks/RdsAutopilot*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !pages[filepath.Base(file)] {
			t.Errorf("%s is the page of no alert", file)
		}
	}
}

// TestRunbooksSearchForLoggedTexts compares what the pages search the log for with the code.
func TestRunbooksSearchForLoggedTexts(t *testing.T) {
	sought := regexp.MustCompile(`\| grep (?:'"result":"([^"]+)"'|"([^"]+)"|(\w+))`)
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "git", "-C", "../..", "ls-files", "*.go").Output()
	if err != nil {
		t.Skipf("left out, because this is no checkout: %v", err)
	}
	var code strings.Builder
	for name := range strings.Lines(string(out)) {
		if name = strings.TrimSpace(name); !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "test/sim/cloud") {
			if text, err := os.ReadFile("../../" + name); err == nil {
				code.Write(text)
			}
		}
	}
	files, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		for _, m := range sought.FindAllStringSubmatch(string(read(t, file)), -1) {
			found++
			if what := m[1] + m[2] + m[3]; !strings.Contains(code.String(), what) {
				t.Errorf("%s looks for %q, which is logged nowhere", file, what)
			}
		}
	}
	if found == 0 {
		t.Error("the pages look for nothing")
	}
}
