// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// prometheus is a running Prometheus.
type prometheus struct{ url string }

// startPrometheus starts a Prometheus that scrapes the targets and evaluates the rules every second. The rules wait for two
// seconds, except that of repeatedly failed rounds, and expect one replica, as with replicaCount: 1.
func startPrometheus(t *testing.T, targets map[string]string) prometheus {
	t.Helper()
	program, dir := tool(t, "prometheus"), t.TempDir()
	quick := alertRules(t)
	for _, g := range quick.Groups {
		for i := range g.Rules {
			if g.Rules[i].For != "" && g.Rules[i].Alert != "RdsAutopilotRoundsFailed" {
				g.Rules[i].For = "2s"
			}
			g.Rules[i].Expr = strings.ReplaceAll(g.Rules[i].Expr, "(rds_autopilot_leader) < 2", "(rds_autopilot_leader) < 1")
		}
	}
	quick.write(t, dir+"/alerts.yaml")
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [alerts.yaml]\nscrape_configs:\n"
	for job, target := range targets { // with the labels of the Prometheus operator, which replace those of the same name
		config += fmt.Sprintf("- {job_name: %s, static_configs: [{targets: ['%s'], labels: {namespace: n, service: s, pod: p, container: c, endpoint: e, node: n}}]}\n",
			job, strings.TrimPrefix(target, "http://"))
	}
	writeFile(t, dir+"/prometheus.yaml", []byte(config))

	cmd := exec.Command(program, "--config.file="+dir+"/prometheus.yaml", "--storage.tsdb.path="+dir+"/data", "--web.listen-address=127.0.0.1:0")
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan string, 1)
	go func() {
		address := regexp.MustCompile(`msg="Listening on" .*address=(127\.0\.0\.1:[1-9]\d*)`)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if m := address.FindStringSubmatch(lines.Text()); m != nil {
				listening <- m[1]
			}
		}
		close(listening)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	address, ok := <-listening
	if !ok {
		t.Fatal("prometheus does not listen")
	}
	return prometheus{"http://" + address}
}

// query returns the labels of each series in the result of an instant query. It leaves out series whose value is NaN.
func (p prometheus) query(ctx context.Context, expr string) (series []map[string]string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/query?query="+url.QueryEscape(expr), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Value  [2]any            `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Error != "" {
		return nil, fmt.Errorf("%s: %s %w", expr, answer.Error, err)
	}
	for _, r := range answer.Data.Result {
		if r.Value[1] != "NaN" {
			series = append(series, r.Metric)
		}
	}
	return series, nil
}

// wait waits until exactly these alerts fire.
func (p prometheus) wait(t *testing.T, what string, want ...string) {
	t.Helper()
	slices.Sort(want)
	var firing []string
	err := world.Eventually(world.Within(t), what, func(ctx context.Context) (bool, error) {
		alerts, err := p.query(ctx, `count by (alertname) (ALERTS{alertstate="firing"})`)
		firing = nil
		for _, labels := range alerts {
			firing = append(firing, labels["alertname"])
		}
		slices.Sort(firing)
		return slices.Equal(firing, want), err
	})
	if err != nil {
		t.Fatalf("%v; the alerts %v fire, want %v", err, firing, want)
	}
}

// panels returns the queries of all dashboards. Their variables have the values of the choice "All" in Grafana.
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
				Title   string `json:"title"`
				Targets []struct{ RefID, Expr string }
			} `json:"panels"`
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

// TestPrometheusShowsPanelsAndFiresAlerts lets Prometheus scrape the service. Every panel shows something, and each staged failure
// fires its alert and no other.
func TestPrometheusShowsPanelsAndFiresAlerts(t *testing.T) {
	tool(t, "prometheus")
	tool(t, "kube-state-metrics")
	w := startWorld(t)
	service, err := w.Serve(world.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	db := w.MustAdd(t, world.Database{Name: "orders", Flavor: "rds.mysql.n1.large.2", Autopilot: true, Workload: simcloud.Workload{UsedGB: 20}})
	waitArmed(t, db)
	p := startPrometheus(t, map[string]string{"rds-autopilot": service.AdminURL, "kube-state-metrics": startStateMetrics(t, w)})
	waitUntil(t, "both are scraped", func(ctx context.Context) (bool, error) {
		up, err := p.query(ctx, "up == 1")
		return len(up) == 2, err
	})
	if hidden, err := p.query(world.Within(t), `{__name__=~".*rds_?autopilot.+",namespace="n",exported_namespace!=""} or {__name__=~".*rds_?autopilot.+",exported_service!=""}`); err != nil || len(hidden) > 0 {
		t.Errorf("labels of targets replace those of %v, %v", hidden, err)
	}
	p.wait(t, "no alert fires")

	if err := db.SetWorkload(simcloud.Workload{UsedGB: 33}); err != nil {
		t.Fatal(err)
	}
	waiting := panels(t)
	if len(waiting) < 30 {
		t.Errorf("the dashboards have %d queries, want at least 30", len(waiting))
	}
	err = world.Eventually(world.Within(t), "every panel has shown something", func(ctx context.Context) (bool, error) {
		for name, expr := range waiting {
			values, err := p.query(ctx, expr)
			if err != nil {
				return false, err
			}
			if len(values) > 0 {
				delete(waiting, name)
			}
		}
		return len(waiting) == 0, nil
	})
	if err != nil {
		t.Errorf("%v; nothing in:\n%s", err, strings.Join(slices.Sorted(maps.Keys(waiting)), "\n"))
	}
	if _, err := db.WaitAutopilot(world.Within(t), "it has grown", func(a *v1alpha1.RdsAutopilot) bool { return len(a.Status.Changes) > 0 }); err != nil {
		t.Fatal(err)
	}
	// The chart leaves this alert out by default. It fires for 15 minutes after a change, so until the test ends.
	const changed = "RdsAutopilotChanged"
	p.wait(t, "a growth is reported", changed)

	forged := w.Cloud.Sign(simcloud.Envelope{TopicURN: w.TopicURN(), Subject: "s", Message: "{}"})
	forged.Message = "changed after it was signed"
	for range 40 { // more than the good ones
		if status, _, err := w.Post(world.Within(t), forged.JSON()); status != http.StatusForbidden || err != nil {
			t.Fatalf("a forged message: %d, %v", status, err)
		}
	}
	p.wait(t, "forged messages are reported", changed, "RdsAutopilotMessagesRejected")

	if err := db.PatchAutopilot(world.Within(t), `{"spec":{"storage":{"maxGB":50}}}`); err != nil {
		t.Fatal(err)
	}
	if err := db.SetWorkload(simcloud.Workload{UsedGB: 47}); err != nil {
		t.Fatal(err)
	}
	p.wait(t, "a read-only database is reported", changed, "RdsAutopilotMessagesRejected", "RdsAutopilotReadOnly")

	if err := service.Kill(); err != nil {
		t.Fatal(err)
	}
	// The forged messages count for an hour.
	p.wait(t, "the missing service is reported", changed, "RdsAutopilotDown", "RdsAutopilotMessagesRejected")
}
