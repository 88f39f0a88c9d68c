// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T) map[string]alert {
	t.Helper()
	text, err := os.ReadFile("../../deploy/alerts.yaml")
	must(t, err)
	var manifest struct {
		Spec struct {
			Groups []struct {
				Rules []alert `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	must(t, yaml.Unmarshal(text, &manifest))
	all := map[string]alert{}
	for _, g := range manifest.Spec.Groups {
		for _, a := range g.Rules {
			all[a.Alert] = a
		}
	}
	if len(all) == 0 {
		t.Fatal("no alerts")
	}
	return all
}

// emptyCluster has no databases.
type emptyCluster struct{ controller.Kubernetes }

func (emptyCluster) EachAutopilot(func(*v1alpha1.RdsAutopilot)) {}

func (emptyCluster) Topic() v1alpha1.Topic { return v1alpha1.Topic{} }

// family is one metric, with the values of each label.
type family struct {
	labels     map[string]map[string]bool
	kind, help string
	histogram  bool
}

// families returns all metrics of a process that has just started.
func families(t *testing.T) map[string]family {
	t.Helper()
	reg := registry("test")
	replicaGauges(reg, func() []string { return nil }, func() int { return 0 })
	controller.New(controller.Options{Kube: emptyCluster{}, Reg: reg, Now: time.Now, Log: zap.NewNop()})
	webhook.New(webhook.Options{Reg: reg, Now: time.Now, Log: zap.NewNop()})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	env := map[string]string{"OS_AUTH_URL": "http://127.0.0.1:1", "OS_USERNAME": "u", "OS_PASSWORD": "p", "OS_DOMAIN_NAME": "d", "OS_PROJECT_NAME": "eu-de"}
	if _, err := otc.Connect(ended, otc.Options{Env: func(k string) string { return env[k] }, Rate: 5, Registerer: reg, Log: zap.NewNop(), Now: time.Now}); err == nil {
		t.Fatal("the cloud answered")
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	gathered, err := reg.Gather()
	must(t, err)
	found := map[string]family{}
	for _, f := range gathered {
		labels := map[string]map[string]bool{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if labels[l.GetName()] == nil {
					labels[l.GetName()] = map[string]bool{}
				}
				labels[l.GetName()][l.GetValue()] = true
			}
		}
		found[f.GetName()] = family{labels, strings.ToLower(f.GetType().String()), f.GetHelp(), f.GetType().String() == "HISTOGRAM"}
	}
	return found
}

var (
	selector = regexp.MustCompile(`(rds_autopilot_[a-z_]+)(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`(?:max|min|sum|count|avg) *(by \(([a-z_, ]+)\))? *\(`)
)

// find returns the family of a metric, also of a part of a histogram.
func find(of map[string]family, metric string) (family, bool) {
	f, ok := of[metric]
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base := strings.TrimSuffix(metric, suffix); !ok && of[base].histogram {
			f, ok = of[base], true
		}
	}
	return f, ok
}

// checkQuery fails the test unless each metric of a query exists from the start, with these labels and values.
func checkQuery(t *testing.T, of map[string]family, name, expr string) {
	t.Helper()
	selectors := selector.FindAllStringSubmatch(expr, -1)
	if len(selectors) == 0 {
		t.Errorf("%s reads no metric of ours: %s", name, expr)
	}
	for _, s := range selectors {
		f, ok := find(of, s[1])
		if !ok {
			t.Errorf("%s: there is no %s", name, s[1])
			continue
		}
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			for value := range strings.SplitSeq(m[3], "|") {
				if !f.labels[m[1]][value] {
					t.Errorf("%s: %s never has %s=%q", name, s[1], m[1], value)
				}
			}
		}
	}
	// Several installations may share a Prometheus. Other labels of a target may differ between replicas, or change with a version.
	groups := grouping.FindAllStringSubmatch(expr, -1)
	for _, g := range groups {
		if !strings.HasPrefix(g[2], "job, namespace, cluster") {
			t.Errorf("%s: %q hides one installation behind another", name, g[0])
		}
	}
	if len(groups) == 0 {
		t.Errorf("%s reads single replicas: %s", name, expr)
	}
	// Repeated decisions are one record and count once, so the counter does not grow while the problem lasts.
	if strings.Contains(expr, "decisions_total") {
		t.Errorf("%s stops while its problem lasts: %s", name, expr)
	}
}

// A label of the Prometheus operator replaces a label of the metric that has its name.
func TestMetricsHaveNoLabelOfATarget(t *testing.T) {
	for name, f := range families(t) {
		for _, label := range []string{"service", "namespace", "pod", "job", "instance", "container", "endpoint", "node", "cluster"} {
			if f.labels[label] != nil {
				t.Errorf("%s has the label %s", name, label)
			}
		}
	}
}

// Each message that is rejected may be a lost alarm.
func TestEachKindOfRejectedMessageHasAnAlert(t *testing.T) {
	var all strings.Builder
	for _, a := range alerts(t) {
		all.WriteString(a.Expr)
	}
	for _, result := range []string{"unavailable", "forged", "malformed", "unreadable", "expired"} {
		if !regexp.MustCompile(`result(=|=~)"([a-z|]+\|)?` + result + `["|]`).MatchString(all.String()) {
			t.Errorf("none for %s", result)
		}
	}
}

// TestEachLastingReasonHasAnAlert compares the alerts with the table of reasons. A reason that no alert selects must be one that ends
// by itself, or one for which the volume grows all the same.
func TestEachLastingReasonHasAnAlert(t *testing.T) {
	all, of := alerts(t), families(t)
	missing := func(name string, reasons []string) (none []string) {
		matched := selector.FindStringSubmatch(all[name].Expr)
		for _, reason := range reasons {
			for _, m := range matcher.FindAllStringSubmatch(matched[2], -1) {
				if m[1] == "reason" && slices.Contains(strings.Split(m[3], "|"), reason) == strings.HasPrefix(m[2], "!") {
					none = append(none, reason)
				}
			}
		}
		return none
	}
	reasons := func(metric string) []string { return slices.Sorted(maps.Keys(of[metric].labels["reason"])) }
	for name, c := range map[string]struct{ reasons, none []string }{
		"RdsAutopilotStorageHeld": {reasons("rds_autopilot_held_changes"), []string{"Recommend"}},
		"RdsAutopilotFlavorHeld":  {reasons("rds_autopilot_held_changes"), []string{"Cooldown", "FleetBrake", "OutsideWindow", "Recommend"}},
		"RdsAutopilotNotReady":    {append(autopilot.NotArmedReasons(), autopilot.ReadFailed), nil},
	} {
		if none := missing(name, c.reasons); len(c.reasons) < 10 || !slices.Equal(none, c.none) {
			t.Errorf("%s leaves out %q of %d reasons, want %q", name, none, len(c.reasons), c.none)
		}
	}
	byWarning := map[autopilot.Reason]string{
		autopilot.ReasonReadOnly: "RdsAutopilotReadOnly", autopilot.ReasonNearCap: "RdsAutopilotCapAhead",
		autopilot.ReasonStatusNotStored: "RdsAutopilotRoundsFailed", autopilot.ReasonInternalError: "RdsAutopilotRoundsFailed",
	}
	grows := []autopilot.Reason{autopilot.ReasonCauseNotData, autopilot.ReasonReplicaSmaller, autopilot.ReasonRuleSilent}
	for _, row := range autopilot.ReasonTable() {
		if _, ok := all[byWarning[row.Reason]]; row.Source == autopilot.SourceWarning && !ok && !slices.Contains(grows, row.Reason) {
			t.Errorf("the warning %s has no alert", row.Reason)
		}
	}
}

func TestAlertsQueryMetricsThatExist(t *testing.T) {
	of := families(t)
	for name, a := range alerts(t) {
		if !strings.Contains(a.Expr, "kube_rdsautopilot_") { // else test/release compares it with the gauges
			checkQuery(t, of, name, a.Expr)
		}
		if _, err := os.Stat("../../docs/runbooks/" + filepath.Base(a.Annotations["runbook_url"])); err != nil || a.Annotations["description"] == "" {
			t.Errorf("%s has no runbook or no description: %v", name, err)
		}
		if s := a.Labels["severity"]; s != "critical" && s != "warning" && s != "info" {
			t.Errorf("%s: severity %q", name, s)
		}
	}
}

func TestGracePeriodIsLongerThanTheStop(t *testing.T) {
	text, err := os.ReadFile("../../deploy/install.yaml")
	must(t, err)
	found := regexp.MustCompile(`(?m)^ +terminationGracePeriodSeconds: (\d+)$`).FindStringSubmatch(string(text))
	o := Defaults()
	if len(found) != 2 || strings.Contains(string(text), "--drain-delay=") {
		t.Fatal(found)
	}
	seconds, err := strconv.Atoi(found[1])
	// Drained, then both servers are shut down, one after the other, and the events are sent.
	if least := o.DrainDelay + 3*drainLimit; err != nil || time.Duration(seconds)*time.Second < least {
		t.Errorf("the pod is killed after %d s, and may take %s; %v", seconds, least, err)
	}
}

func TestDashboardsQueryMetricsThatExist(t *testing.T) {
	all := families(t)
	files, err := filepath.Glob("../../deploy/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards, %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, metric := range regexp.MustCompile(`\brds_autopilot_[a-z_]+`).FindAllString(string(text), -1) {
			if _, ok := find(all, metric); !ok {
				t.Errorf("%s: there is no metric %s", file, metric)
			}
		}
	}
}

var update = flag.Bool("update", false, "write docs/metrics.md anew")

const metricsHead = `# Metrics

With this page you look up each metric, with its type, labels and values. ` + "`make generate`" + ` writes it.
[Monitoring](monitoring.md) has the alerts and dashboards.

Labels have fixed sets of values; the answers of the cloud come with the first of their kind. No label names an object.

| metric | type | labels | meaning |
|---|---|---|---|
`

// manyValues of a label are not listed one by one.
const manyValues = 8

// TestTheReferenceOfMetricsIsGenerated compares docs/metrics.md with the registry; -update writes it.
func TestTheReferenceOfMetricsIsGenerated(t *testing.T) {
	const page = "../../docs/metrics.md"
	all := families(t)
	text := metricsHead
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !strings.HasPrefix(name, "rds_autopilot_") {
			continue
		}
		var labels []string
		for _, label := range slices.Sorted(maps.Keys(all[name].labels)) {
			values := slices.Sorted(maps.Keys(all[name].labels[label]))
			switch {
			case name == "rds_autopilot_build_info":
				labels = append(labels, "`"+label+"`")
			case len(values) > manyValues:
				labels = append(labels, fmt.Sprintf("`%s`: %d values", label, len(values)))
			default:
				labels = append(labels, fmt.Sprintf("`%s`: %s", label, strings.Join(values, ", ")))
			}
		}
		text += fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, all[name].kind, strings.Join(labels, "; "), strings.ReplaceAll(all[name].help, "|", "\\|"))
	}
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(page)
	must(t, err)
	if diff := cmp.Diff(text, string(written)); diff != "" {
		t.Errorf("%s is stale: run make generate (-generated +file):\n%s", page, diff)
	}
}
