// SPDX-License-Identifier: Apache-2.0

package app

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, string(written)); diff != "" {
		t.Errorf("%s is stale: run make generate (-generated +file):\n%s", page, diff)
	}
}
