// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the tables of docs/command-line.md anew")

// TestTheTablesOfFlagsAreGenerated compares the table of each command with its flags; -update writes it. A flag that serve
// has too is explained there only.
func TestTheTablesOfFlagsAreGenerated(t *testing.T) {
	const page, head = "../../docs/command-line.md", "| flag | default | meaning |\n|---|---|---|\n"
	before, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(before)
	commands := 0
	root := newRoot(environment())
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range root.Commands() {
		rows := head
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			switch {
			case f.Name == "help":
			case c != serve && serve.Flags().Lookup(f.Name) != nil:
				rows += fmt.Sprintf("| `--%s` | | as for `serve` |\n", f.Name)
			default:
				rows += describe(f)
			}
		})
		if rows == head {
			continue
		}
		table := regexp.MustCompile(`(?s)(\n## ` + c.Name() + `\n.*?)` + regexp.QuoteMeta(head) + `(\|[^\n]*\n)*`)
		if !table.MatchString(text) {
			t.Errorf("%s has no table for %s", page, c.Name())
		}
		text = table.ReplaceAllStringFunc(text, func(found string) string { return found[:strings.Index(found, head)] + rows })
		commands++
	}
	if commands < 3 {
		t.Errorf("%d commands with flags", commands)
	}
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(text, string(before)); diff != "" {
		t.Errorf("%s is stale: run make generate (-generated +file):\n%s", page, diff)
	}
}

func TestChartSchemaAcceptsEveryFlagOfServe(t *testing.T) {
	// The chart has values of their own for these, or fixes them in the pod.
	elsewhere := []string{
		"public-url", "mode", "watch-namespaces", "webhook-addr", "admin-addr", "kubeconfig", "context", "lease-namespace",
		"system-namespace", "leader-elect", "labels",
	}
	text, err := os.ReadFile("../../deploy/chart/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Flags struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	accepted := schema.Properties.Flags.Properties
	c, _ := serveCommand(environment())
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if accepted[f.Name] == nil && !slices.Contains(elsewhere, f.Name) {
			t.Errorf("values.schema.json lacks --%s", f.Name)
		}
		if accepted[f.Name] != nil && f.Shorthand != "" {
			t.Errorf("--%s has a short form, so it does not come from the environment, by which the chart sets it", f.Name)
		}
		delete(accepted, f.Name)
	})
	if len(accepted) > 0 {
		t.Errorf("values.schema.json has flags that serve lacks: %v", accepted)
	}
}

// describe returns the row of a flag. Its text says after the meaning what an empty value means. That is the default.
func describe(f *pflag.Flag) string {
	name := "`--" + f.Name + "`"
	if f.Shorthand != "" {
		name += ", `-" + f.Shorthand + "`"
	}
	meaning, empty, _ := strings.Cut(f.Usage, "; empty means ")
	value := f.DefValue
	if f.Value.Type() == "duration" {
		value = strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(value)
	}
	switch {
	case value != "" && value != "[]":
		value = "`" + value + "`"
	case empty != "":
		value = empty
	case strings.Contains(meaning, "; required"):
		meaning, value = strings.Replace(meaning, "; required", "", 1), "required"
	default:
		value = "none"
	}
	return fmt.Sprintf("| %s | %s | %s |\n", name, value, strings.ReplaceAll(meaning, "|", "\\|"))
}
