// SPDX-License-Identifier: Apache-2.0

package release

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

// gaugeConfig is the part of kube-state-metrics' configuration that is used here, with its names.
type gaugeConfig struct {
	Kind string `json:"kind"`
	Spec struct {
		Resources []struct {
			GroupVersionKind struct{ Group, Version, Kind string } `json:"groupVersionKind"`
			MetricNamePrefix string                                `json:"metricNamePrefix"`
			ErrorLogV        int                                   `json:"errorLogV"`
			LabelsFromPath   map[string][]string                   `json:"labelsFromPath"`
			Metrics          []gaugeMetric                         `json:"metrics"`
		} `json:"resources"`
	} `json:"spec"`
}

type gaugeMetric struct {
	Name string `json:"name"`
	Help string `json:"help"`
	Each struct {
		Type  string `json:"type"`
		Gauge struct {
			Path           []string            `json:"path"`
			LabelsFromPath map[string][]string `json:"labelsFromPath"`
			ValueFrom      []string            `json:"valueFrom"`
		} `json:"gauge"`
	} `json:"each"`
}

func gauges(t *testing.T) gaugeConfig {
	t.Helper()
	var config gaugeConfig
	if err := yaml.UnmarshalStrict(read(t, deploy+"/kube-state-metrics.yaml"), &config); err != nil {
		t.Fatal(err)
	}
	if config.Kind != "CustomResourceStateMetrics" || len(config.Spec.Resources) != 1 {
		t.Fatalf("%s with %d resources", config.Kind, len(config.Spec.Resources))
	}
	return config
}

// follow takes steps into a document: a field, or a number in a list.
func follow(v any, path []string) any {
	for _, step := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// TestGaugesReadFieldsThatExist follows every path through the schema of the resource.
func TestGaugesReadFieldsThatExist(t *testing.T) {
	objects, err := apiserver.Read(deploy + "/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml")
	if err != nil {
		t.Fatal(err)
	}
	schema := follow(objects[0].Object, []string{"spec", "versions", "0", "schema", "openAPIV3Schema"})
	exists := func(at any, path []string) bool {
		for _, step := range path {
			if items := follow(at, []string{"items"}); items != nil {
				key, _, lookup := strings.Cut(strings.Trim(step, "[]"), "=")
				if at = items; lookup && follow(at, []string{"properties", key}) == nil {
					return false
				}
				if _, err := strconv.Atoi(step); lookup || err == nil {
					continue
				}
			}
			if at = follow(at, []string{"properties", step}); at == nil {
				return false
			}
		}
		return true
	}
	config := gauges(t)
	for _, r := range config.Spec.Resources {
		if r.GroupVersionKind != (struct{ Group, Version, Kind string }{"autopilot.otc.mcsps.de", "v1alpha1", "RdsAutopilot"}) {
			t.Errorf("gauges of %v", r.GroupVersionKind)
		}
		for _, m := range r.Metrics {
			if m.Each.Type != "Gauge" || m.Help == "" {
				t.Errorf("%s: type %s, help %q", m.Name, m.Each.Type, m.Help)
			}
			paths := [][]string{append(slices.Clone(m.Each.Gauge.Path), m.Each.Gauge.ValueFrom...)}
			for _, path := range m.Each.Gauge.LabelsFromPath {
				paths = append(paths, append(slices.Clone(m.Each.Gauge.Path), path...))
			}
			for _, path := range paths {
				if !exists(schema, path) {
					t.Errorf("%s reads %v, which the resource has not", m.Name, path)
				}
			}
		}
	}
	if exists(schema, []string{"status", "instance", "volumeGb"}) || exists(schema, []string{"status", "decisions", "[metrik=storage]", "valuePercent"}) {
		t.Error("whatever is read exists")
	}
}

// TestAlertsReadGaugesThatExist compares each gauge in the alerts, and the labels that an alert selects or shows, with
// kube-state-metrics' configuration.
func TestAlertsReadGaugesThatExist(t *testing.T) {
	resource := gauges(t).Spec.Resources[0]
	gauge := regexp.MustCompile(`(kube_rdsautopilot_\w+)(?:\{([^}]*)\})?`)
	selected := regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)`)
	shown := regexp.MustCompile(`\$labels\.(\w+)`)
	found := 0
	for _, g := range alertRules(t).Groups {
		for _, r := range g.Rules {
			for _, m := range gauge.FindAllStringSubmatch(r.Expr, -1) {
				found++
				i := slices.IndexFunc(resource.Metrics, func(x gaugeMetric) bool { return resource.MetricNamePrefix+"_"+x.Name == m[1] })
				if i < 0 {
					t.Errorf("%s: there is no %s", r.Alert, m[1])
					continue
				}
				labels := selected.FindAllStringSubmatch(m[2], -1)
				for _, text := range r.Annotations {
					labels = append(labels, shown.FindAllStringSubmatch(text, -1)...)
				}
				for _, l := range labels {
					if resource.LabelsFromPath[l[1]] == nil && resource.Metrics[i].Each.Gauge.LabelsFromPath[l[1]] == nil {
						t.Errorf("%s: %s has no label %s", r.Alert, m[1], l[1])
					}
				}
			}
		}
	}
	if found == 0 {
		t.Error("no alert reads a gauge")
	}
}
