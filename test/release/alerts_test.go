// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"path/filepath"
	"regexp"
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

func (r ruleFile) tempFile(t *testing.T, path string) {
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
	alertRules(t).tempFile(t, dir+"/alerts.yaml")
	writeFile(t, dir+"/cases.yaml", read(t, cases))
	for _, args := range [][]string{{"check", "rules", "--lint=all", "alerts.yaml"}, {"test", "rules", "cases.yaml"}} {
		cmd := command(t, nil, promtool, args...)
		cmd.Dir = dir
		run(t, cmd)
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

// TestRunbooksSearchTheLogForTextsOfTheCode finds a grep that prints nothing, because the code no longer logs its text.
func TestRunbooksSearchTheLogForTextsOfTheCode(t *testing.T) {
	grep := regexp.MustCompile(`\| grep (?:'"result":"([^"]+)"'|"([^"]+)"|(\w+))`)
	files, err := filepath.Glob(root + "/docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		for _, m := range grep.FindAllStringSubmatch(string(read(t, file)), -1) {
			found++
			text := m[1] + m[2] + m[3]
			if err := command(t, nil, "git", "grep", "-qF", text, "--", "*.go", ":!*_test.go", ":!test").Run(); err != nil {
				t.Errorf("%s searches for %q, which the code does not log: %v", file, text, err)
			}
		}
	}
	if found == 0 {
		t.Error("no runbook searches the log")
	}
}

// gaugeConfig is the part of kube-state-metrics' configuration that the test compares with the alerts.
type gaugeConfig struct {
	Spec struct {
		Resources []struct {
			MetricNamePrefix string              `json:"metricNamePrefix"`
			LabelsFromPath   map[string][]string `json:"labelsFromPath"`
			Metrics          []struct {
				Name string `json:"name"`
				Each struct {
					Gauge struct {
						LabelsFromPath map[string][]string `json:"labelsFromPath"`
					} `json:"gauge"`
				} `json:"each"`
			} `json:"metrics"`
		} `json:"resources"`
	} `json:"spec"`
}

// labelsOfGauges returns the labels of each gauge that kube-state-metrics exports.
func labelsOfGauges(t *testing.T) map[string]map[string]bool {
	t.Helper()
	var config gaugeConfig
	if err := yaml.Unmarshal(read(t, deploy+"/kube-state-metrics.yaml"), &config); err != nil {
		t.Fatal(err)
	}
	labels := map[string]map[string]bool{}
	for _, r := range config.Spec.Resources {
		for _, m := range r.Metrics {
			of := map[string]bool{}
			for label := range r.LabelsFromPath {
				of[label] = true
			}
			for label := range m.Each.Gauge.LabelsFromPath {
				of[label] = true
			}
			labels[r.MetricNamePrefix+"_"+m.Name] = of
		}
	}
	return labels
}

// TestAlertsReadGaugesAndLabelsThatExist compares each gauge in an alert, and each label that the alert selects or shows, with
// kube-state-metrics' configuration.
func TestAlertsReadGaugesAndLabelsThatExist(t *testing.T) {
	labels := labelsOfGauges(t)
	gauge := regexp.MustCompile(`(kube_rdsautopilot_\w+)(?:\{([^}]*)\})?`)
	selected := regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)`)
	shown := regexp.MustCompile(`\$labels\.(\w+)`)
	found := 0
	for _, g := range alertRules(t).Groups {
		for _, r := range g.Rules {
			for _, m := range gauge.FindAllStringSubmatch(r.Expr, -1) {
				found++
				if labels[m[1]] == nil {
					t.Errorf("%s reads %s, which is not exported", r.Alert, m[1])
				}
				used := selected.FindAllStringSubmatch(m[2], -1)
				for _, text := range r.Annotations {
					used = append(used, shown.FindAllStringSubmatch(text, -1)...)
				}
				for _, l := range used {
					if !labels[m[1]][l[1]] {
						t.Errorf("%s reads the label %s, which %s does not have", r.Alert, l[1], m[1])
					}
				}
			}
		}
	}
	if found == 0 {
		t.Error("no alert reads a gauge")
	}
}
