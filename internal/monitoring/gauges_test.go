package monitoring

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/internal/kubetest"
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

// follow takes the steps that kube-state-metrics takes: a field, a number in a list, or [key=value] for the first of a list.
func follow(v any, path []string) any {
	for _, step := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			key, value, lookup := strings.Cut(strings.Trim(step, "[]"), "=")
			i, err := strconv.Atoi(step)
			if lookup {
				i = slices.IndexFunc(at, func(x any) bool { return x.(map[string]any)[key] == value })
			} else if err != nil {
				return nil
			}
			if i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// number is what kube-state-metrics makes of a value; false where it makes nothing.
func number(v any) (float64, bool) {
	switch is := v.(type) {
	case float64:
		return is, true
	case string:
		switch strings.ToLower(is) {
		case "true":
			return 1, true
		case "false", "unknown":
			return 0, true
		}
		if at, err := time.Parse(time.RFC3339, is); err == nil {
			return float64(at.Unix()), true
		}
		f, err := strconv.ParseFloat(is, 64)
		return f, err == nil
	}
	return 0, false
}

// expose writes the gauges of one object as kube-state-metrics does, and as Prometheus reads them.
func (c gaugeConfig) expose(object any) string {
	var text strings.Builder
	for _, r := range c.Spec.Resources {
		for _, m := range r.Metrics {
			values, isList := follow(object, m.Each.Gauge.Path).([]any)
			if !isList {
				values = []any{follow(object, m.Each.Gauge.Path)}
			}
			for _, v := range values {
				labels := []string{}
				for label, path := range r.LabelsFromPath {
					labels = append(labels, fmt.Sprintf("%s=%q", label, follow(object, path)))
				}
				for label, path := range m.Each.Gauge.LabelsFromPath {
					labels = append(labels, fmt.Sprintf("%s=%q", label, follow(v, path)))
				}
				slices.Sort(labels)
				if f, ok := number(follow(v, m.Each.Gauge.ValueFrom)); ok {
					fmt.Fprintf(&text, "%s_%s{%s} %v\n", r.MetricNamePrefix, m.Name, strings.Join(labels, ","), f)
				}
			}
		}
	}
	return text.String()
}

func TestGaugesOfOneDatabase(t *testing.T) {
	var object any
	const text = `{
	  "metadata": {"namespace": "shop", "name": "orders"}, "spec": {"storage": {"maxGB": 500}},
	  "status": {
	    "conditions": [{"type": "Armed", "status": "True"}, {"type": "Limited", "status": "False"}, {"type": "Ready", "status": "Unknown"}],
	    "instance": {"volumeGB": 50},
	    "decisions": [{"metric": "cpu", "valuePercent": "97.0"}, {"metric": "storage", "valuePercent": "78.2"}, {"metric": "storage", "valuePercent": "70.0"}],
	    "changes": [{"completionTime": "2026-11-20T12:00:00.123456Z"}, {"completionTime": "2026-11-19T12:00:00.000000Z"}]}}`
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	want := `kube_rdsautopilot_volume_gb{name="orders",namespace="shop"} 50
kube_rdsautopilot_volume_max_gb{name="orders",namespace="shop"} 500
kube_rdsautopilot_storage_used_percent{name="orders",namespace="shop"} 78.2
kube_rdsautopilot_last_change_timestamp_seconds{name="orders",namespace="shop"} 1.795176e+09
kube_rdsautopilot_condition{name="orders",namespace="shop",type="Armed"} 1
kube_rdsautopilot_condition{name="orders",namespace="shop",type="Limited"} 0
kube_rdsautopilot_condition{name="orders",namespace="shop",type="Ready"} 0
`
	if got := gauges(t).expose(object); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestGaugesReadFieldsThatExist follows every path through the schema of the resource.
func TestGaugesReadFieldsThatExist(t *testing.T) {
	objects, err := kubetest.Read(deploy + "/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml")
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
