// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/world"
)

// startStateMetrics starts kube-state-metrics with our configuration and with the rights of our chart. It returns its URL.
func startStateMetrics(t *testing.T, w *world.World) (url string) {
	t.Helper()
	program := tool(t, "kube-state-metrics")
	rendered := template(t, "--values", "deploy/chart/ci/default-values.yaml", "--show-only", "templates/kubestatemetrics.yaml", "--set",
		"monitoring.namespace=default,monitoring.kubeStateMetrics.enabled=true,monitoring.kubeStateMetrics.serviceAccount=state-metrics")
	must(t, w.Apply(world.Within(t), tempFile(t, "rendered.yaml", rendered)))
	kubeconfig := kubeconfigOf(t, w, "default", "state-metrics")
	var ports [2]int // kube-state-metrics does not log the ports that it gets for 0
	for i := range ports {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		ports[i] = free.Addr().(*net.TCPAddr).Port
		must(t, free.Close())
	}
	cmd := exec.Command(program, "--kubeconfig="+kubeconfig, "--custom-resource-state-only", "--custom-resource-state-config-file="+deploy+"/kube-state-metrics.yaml",
		"--host=127.0.0.1", fmt.Sprintf("--port=%d", ports[0]), "--telemetry-host=127.0.0.1", fmt.Sprintf("--telemetry-port=%d", ports[1]))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the output of kube-state-metrics:\n%s", &output)
		}
	})
	return fmt.Sprintf("http://127.0.0.1:%d", ports[0])
}

// TestKubeStateMetricsExportsTheGaugesThatAlertsRead has one database with a value for each gauge.
func TestKubeStateMetricsExportsTheGaugesThatAlertsRead(t *testing.T) {
	tool(t, "kube-state-metrics")
	w := startWorld(t)
	_, client := clients(t, w.Kube.Config())
	object := &unstructured.Unstructured{}
	const manifest = `
apiVersion: autopilot.otc.mcsps.de/v1alpha1
kind: RdsAutopilot
metadata: {name: orders, namespace: default}
spec: {}
status:
  conditions:
  - {type: Armed, status: "True", reason: A, message: "", lastTransitionTime: "2026-11-20T12:00:00Z"}
  - {type: Limited, status: "False", reason: A, message: "", lastTransitionTime: "2026-11-20T12:00:00Z"}
  - {type: Ready, status: Unknown, reason: A, message: "", lastTransitionTime: "2026-11-20T12:00:00Z"}
  instance: {id: x, volumeGB: 50}
  maxGB: 500
  used: {gb: "39.5", time: "2026-11-20T12:00:00Z"}
  decisions:
  - {metric: cpu, valuePercent: "97.0", action: None, reason: A, message: "", count: 1, time: "2026-11-20T12:00:00Z", lastTime: "2026-11-20T12:00:00Z"}
  - {metric: storage, valuePercent: "78.2", action: None, reason: A, message: "", count: 1, time: "2026-11-20T12:00:00Z", lastTime: "2026-11-20T12:00:00Z"}
  - {metric: storage, valuePercent: "70.0", action: None, reason: A, message: "", count: 1, time: "2026-11-20T12:00:00Z", lastTime: "2026-11-20T12:00:00Z"}
  changes:
  - {kind: Volume, by: Autopilot, from: "40", to: "50", metrics: [storage], state: Completed, endTime: "2026-11-20T12:00:00.123456Z"}
  - {kind: Volume, by: Autopilot, from: "30", to: "40", state: Completed, endTime: "2026-11-19T12:00:00.000000Z"}
`
	must(t, yaml.Unmarshal([]byte(manifest), &object.Object))
	resource := client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace("default")
	created, err := resource.Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
	created.Object["status"] = object.Object["status"]
	if _, err := resource.UpdateStatus(t.Context(), created, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		t.Fatal(err)
	}
	const head = `customresource_group="autopilot.otc.mcsps.de",customresource_kind="RdsAutopilot",customresource_version="v1alpha1"`
	of := func(metric string, labels string, value string) string {
		return fmt.Sprintf(`kube_rdsautopilot_%s{%s,name="orders",rds_namespace="default"%s} %s`, metric, head, labels, value)
	}
	want := []string{
		of("volume_gb", "", "50"), of("volume_max_gb", "", "500"), of("storage_used_gb", "", "39.5"), of("storage_used_percent", "", "78.2"),
		// kube-state-metrics sorts the labels.
		`kube_rdsautopilot_last_change_timestamp_seconds{by="Autopilot",` + head + `,from="40",kind="Volume",metric="storage",name="orders",rds_namespace="default",state="Completed",to="50"} 1.795176e+09`,
		of("condition", `,type="Armed"`, "1"), of("condition", `,type="Limited"`, "0"), of("condition", `,type="Ready"`, "0"),
	}
	slices.Sort(want)
	url := startStateMetrics(t, w)
	var got []string
	err = world.Eventually(t.Context(), "all gauges are there", func(ctx context.Context) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
		if err != nil {
			return false, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		got = slices.DeleteFunc(strings.Split(string(text), "\n"), func(l string) bool { return !strings.HasPrefix(l, "kube_rdsautopilot") })
		slices.Sort(got)
		return slices.Equal(got, want), err
	})
	if err != nil {
		t.Errorf("%v; got\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	checkQueries(t, got)
}

// checkQueries fails the test unless each gauge in an alert or a panel, and each label that it selects, is among the samples.
func checkQueries(t *testing.T, samples []string) {
	t.Helper()
	gauge := regexp.MustCompile(`(kube_rdsautopilot_\w+)(?:\{([^}]*)\})?`)
	label := regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)`)
	exported := map[string]bool{}
	for _, sample := range samples {
		m := gauge.FindStringSubmatch(sample)
		exported[m[1]] = true
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			exported[m[1]+" "+l[1]] = true
		}
	}
	queries := panels(t)
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	must(t, json.Unmarshal(rulesOf(t, read(t, deploy+"/alerts.yaml")), &rules))
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			queries[r.Alert] = r.Expr
		}
	}
	checked := 0
	for name, expr := range queries {
		for _, m := range gauge.FindAllStringSubmatch(expr, -1) {
			checked++
			if !exported[m[1]] {
				t.Errorf("%s reads %s, which is not exported", name, m[1])
			}
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				if !exported[m[1]+" "+l[1]] {
					t.Errorf("%s reads the label %s, which %s does not have", name, l[1], m[1])
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d gauges are read", checked)
	}
}

const deploy = root + "/deploy"

// rulesOf returns the rule file of Prometheus that a PrometheusRule contains, as JSON.
func rulesOf(t *testing.T, manifest []byte) []byte {
	t.Helper()
	var rule struct{ Spec json.RawMessage }
	must(t, yaml.Unmarshal(manifest, &rule))
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
		must(t, json.Unmarshal(read(t, file), &dashboard))
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
