// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

const deploy = root + "/deploy"

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
	return rulesOf(t, read(t, deploy+"/alerts.yaml"))
}

// rulesOf returns the rules of a PrometheusRule.
func rulesOf(t *testing.T, text []byte) ruleFile {
	t.Helper()
	var manifest struct {
		APIVersion, Kind string
		Metadata         any
		Spec             ruleFile
	}
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest.Spec.Groups) == 0 {
		t.Fatal("no rules")
	}
	return manifest.Spec
}

// write writes a rule file.
func (r ruleFile) write(t *testing.T, path string) {
	t.Helper()
	text, err := yaml.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, text)
}

func TestEveryAlertFiresAndStaysSilent(t *testing.T) {
	promtool, dir := tool(t, "promtool"), t.TempDir()
	alertRules(t).write(t, dir+"/alerts.yaml")
	selecting := template(t, "--values", "deploy/chart/ci/everything-values.yaml", "--kube-version", "1.36",
		"--show-only", "templates/prometheusrule.yaml")
	rulesOf(t, []byte(selecting)).write(t, dir+"/selecting.yaml")
	test := []string{"test", "rules"}
	for _, cases := range []string{"testdata/alerts-cases.yaml", "testdata/alerts-forecast-cases.yaml"} {
		writeFile(t, filepath.Join(dir, filepath.Base(cases)), read(t, cases))
		test = append(test, filepath.Base(cases))
	}
	for _, args := range [][]string{{"check", "rules", "--lint=all", "alerts.yaml", "selecting.yaml"}, test} {
		cmd := command(t, nil, promtool, args...)
		cmd.Dir = dir
		run(t, cmd)
	}
}

// TestRunbookURLsNamePagesThatExist also finds a page that no alert links to.
func TestRunbookURLsNamePagesThatExist(t *testing.T) {
	files, err := filepath.Glob(root + "/docs/runbooks/RdsAutopilot*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]bool{}
	for _, file := range files {
		pages[filepath.Base(file)] = true
	}
	for _, g := range alertRules(t).Groups {
		for _, r := range g.Rules {
			page := filepath.Base(r.Annotations["runbook_url"])
			if !pages[page] {
				t.Errorf("the runbook_url of %s names %s, which does not exist", r.Alert, page)
			}
			delete(pages, page)
		}
	}
	if len(pages) > 0 {
		t.Errorf("no alert links to %v", pages)
	}
}
