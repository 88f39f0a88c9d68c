// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const deploy = root + "/deploy"

// rulesOf returns the rule file of Prometheus that a PrometheusRule contains, as JSON.
func rulesOf(t *testing.T, manifest []byte) []byte {
	t.Helper()
	var rule struct{ Spec json.RawMessage }
	if err := yaml.Unmarshal(manifest, &rule); err != nil {
		t.Fatal(err)
	}
	return rule.Spec
}

// panels returns the queries of all dashboards, by panel. Their variables have the values of the choice "All" in Grafana.
func panels(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(deploy + "/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards, %v", err)
	}
	queries := map[string]string{}
	for _, file := range files {
		var dashboard struct {
			Panels []struct {
				Title   string
				Targets []struct{ RefID, Expr string }
			}
		}
		if err := json.Unmarshal(read(t, file), &dashboard); err != nil {
			t.Fatal(err)
		}
		for _, p := range dashboard.Panels {
			for _, target := range p.Targets {
				expr := strings.NewReplacer("$__rate_interval", "30s", "$job", ".*", "$namespace", ".*").Replace(target.Expr)
				queries[filepath.Base(file)+", "+p.Title+", "+target.RefID] = expr
			}
		}
	}
	return queries
}

func TestEveryAlertFiresAndStaysSilent(t *testing.T) {
	promtool, dir := tool(t, "promtool"), t.TempDir()
	writeFile(t, dir+"/alerts.yaml", rulesOf(t, read(t, deploy+"/alerts.yaml")))
	selecting := template(t, "--values", "deploy/chart/ci/everything-values.yaml", "--kube-version", "1.36",
		"--show-only", "templates/prometheusrule.yaml")
	writeFile(t, dir+"/selecting.yaml", rulesOf(t, []byte(selecting)))
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

func TestPanelsHaveValidQueries(t *testing.T) {
	file := "groups:\n- name: panels\n  rules:\n"
	for name, expr := range panels(t) {
		file += fmt.Sprintf("  - {record: panel, labels: {name: %q}, expr: %q}\n", name, expr)
	}
	run(t, command(t, nil, tool(t, "promtool"), "check", "rules", "--lint=none", tempFile(t, "panels.yaml", file)))
}
