// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// perDatabase are the names of the gauges that kube-state-metrics makes of each database.
func perDatabase(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../deploy/kube-state-metrics.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Spec struct {
			Resources []struct {
				MetricNamePrefix string `json:"metricNamePrefix"`
				Metrics          []struct {
					Name string `json:"name"`
				} `json:"metrics"`
			} `json:"resources"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, r := range config.Spec.Resources {
		for _, m := range r.Metrics {
			names[r.MetricNamePrefix+"_"+m.Name] = true
		}
	}
	return names
}

func TestDashboardsAskForMetricsThatExist(t *testing.T) {
	metric := regexp.MustCompile(`\b(rds_autopilot|kube_rdsautopilot)_[a-z_]+`)
	of, gauges := families(t), perDatabase(t)
	shown := map[string]bool{}
	files, err := filepath.Glob("../../deploy/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards, %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct {
			Templating any `json:"templating"`
			Panels     []struct {
				Title   string `json:"title"`
				Type    string `json:"type"`
				Targets []struct {
					Expr string `json:"expr"`
				} `json:"targets"`
			} `json:"panels"`
		}
		if err := json.Unmarshal(text, &dashboard); err != nil {
			t.Fatal(err)
		}
		for _, p := range dashboard.Panels {
			if len(p.Targets) == 0 && p.Type != "row" {
				t.Errorf("%s, %s: no query", file, p.Title)
			}
			for _, target := range p.Targets {
				names := metric.FindAllString(target.Expr, -1)
				if len(names) == 0 {
					t.Errorf("%s, %s asks for nothing of ours: %s", file, p.Title, target.Expr)
				}
				for _, name := range names {
					if _, ok := exists(of, name); !ok && !gauges[name] {
						t.Errorf("%s, %s: there is no %s", file, p.Title, name)
					}
					shown[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")] = true
				}
			}
		}
	}
	for name := range gauges {
		if !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
	for name := range of {
		if strings.HasPrefix(name, "rds_autopilot_") && !shown[name] && !slices.Contains([]string{
			"rds_autopilot_foreign_objects", "rds_autopilot_unwatched_objects", "rds_autopilot_refused_namespaces", certificateExpiry,
		}, name) { // these have alerts
			t.Errorf("no panel shows %s", name)
		}
	}
}
